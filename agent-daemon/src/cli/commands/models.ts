// `rollscope models`: what is in the cache, fetching into it, and checking that nothing of it changed.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { cacheFolder } from "../../recipes/cacheFolder.ts";
import { listEntries, verifyEntry } from "../../recipes/modelCache.ts";
import { modelSources } from "../../recipes/modelSource.ts";
import { ensureModel } from "../../recipes/models.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { formatBytes } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";
import { visible } from "../terminal/text.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export async function listModels(environment: Environment, output: Output): Promise<ExitName> {
  const cache = cacheFolder(environment);
  const entries = await listEntries(cache, "models");
  const here = new Set(entries.map((entry) => entry.name));
  const sources = Object.entries(modelSources).map(([name, source]) => ({ name, description: source.description }));
  output.document({ cache, models: entries, sources });
  if (output.json) return "ok";
  const rows = [
    ...entries.map((entry) => [visible(entry.source), formatBytes(entry.bytes), entry.folder]),
    ...sources
      .filter((source) => !here.has(source.name))
      .map((source) => [source.name, "not fetched", visible(source.description)]),
  ];
  const columns = [{ title: "model" }, { title: "size", align: "right" as const }, { title: "where" }];
  output.lines(renderTable(columns, rows, output.width));
  return "ok";
}

export async function fetchModel(
  source: string,
  revision: string | null,
  environment: Environment,
  signal: AbortSignal,
  output: Output,
): Promise<ExitName> {
  const ready = await ensureModel({ source, ...(revision === null ? {} : { revision }) }, { environment, signal });
  output.document(ready);
  if (!output.json) output.lines([ready.path]);
  return "ok";
}

/** @param wanted source or name in the cache; null = all */
export async function verifyModels(wanted: string | null, environment: Environment, output: Output): Promise<ExitName> {
  const all = await listEntries(cacheFolder(environment), "models");
  const entries = wanted === null ? all : all.filter((entry) => entry.name === wanted || entry.source === wanted);
  if (wanted !== null && entries.length === 0) {
    throw new RollscopeError("MODEL_NOT_FOUND", `There is no model ${wanted} in the cache.`, {
      next: `\`rollscope models fetch ${wanted}\` fetches it; \`rollscope models list\` shows what is there.`,
      at: { source: wanted },
    });
  }
  const models = [];
  for (const entry of entries) {
    models.push({ name: entry.name, source: entry.source, folder: entry.folder, changed: await verifyEntry(entry) });
  }
  output.document({ ok: models.every((model) => model.changed.length === 0), models });
  if (!output.json) {
    output.lines(
      models.map(({ name, changed }) =>
        changed.length === 0
          ? `${name}: ${output.paint("green", "whole")}`
          : `${name}: ${output.paint("red", `changed: ${changed.join(", ")}`)}`,
      ),
    );
  }
  return models.every((model) => model.changed.length === 0) ? "ok" : "failed";
}
