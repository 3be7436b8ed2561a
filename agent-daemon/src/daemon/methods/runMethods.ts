import type { CreateMethods } from "./methodTypes.ts";

export const runMethods: CreateMethods = () => ({ handlers: {} });
