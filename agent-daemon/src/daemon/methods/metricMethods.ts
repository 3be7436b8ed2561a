import type { CreateMethods } from "./methodTypes.ts";

export const metricMethods: CreateMethods = () => ({ handlers: {} });
