import type { CreateMethods } from "./methodTypes.ts";

export const machineMethods: CreateMethods = () => ({ handlers: {} });
