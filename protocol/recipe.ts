// The one schema of recipe.yaml. Types are inferred from it, protocol/recipe.schema.json is generated from it, and whoever
// reads a recipe gets a value that passed it. Rules between keys live beside the reader (agent-daemon/src/recipes).
import { z } from "zod";
import { advantagesSchema } from "./advantages.ts";
import { objectiveSchema } from "./objective.ts";
import { evaluationSchema, samplingSchema, trainingSchema } from "./recipeLoop.ts";
import {
  dataSchema,
  engineSchema,
  indexesSchema,
  launcherSchema,
  modelSchema,
  recordFieldsSchema,
  retentionSchema,
  storeSchema,
  taskFieldsSchema,
} from "./recipePlace.ts";

export const recipeSchema = z
  .strictObject({
    name: z.string().min(1).max(100).describe("Name of the recipe; runs are named after it."),
    model: modelSchema,
    engine: engineSchema,
    launcher: launcherSchema,
    data: dataSchema,
    sampling: samplingSchema,
    objective: objectiveSchema.describe("What is minimised: the policy loss, KL, entropy and corrections."),
    advantages: advantagesSchema.describe("How scores become advantages."),
    training: trainingSchema,
    evaluation: evaluationSchema,
    store: storeSchema,
    retention: retentionSchema,
    taskSchema: taskFieldsSchema,
    recordFields: recordFieldsSchema,
    indexes: indexesSchema,
    profiles: z
      .record(z.string().min(1), z.record(z.string(), z.json()))
      .default({})
      .describe("Named sets of overrides, chosen with --profile; each holds part of the keys above."),
  })
  .describe("A Rollscope recipe.");

/** A recipe with every default filled in. */
export type RecipeConfig = z.infer<typeof recipeSchema>;
