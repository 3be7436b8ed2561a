// The configuration of a run as a table: each value with the place it came from, as config.resolved.yaml says in its comments.
import { readFileSync } from "node:fs";
import { isMap, isScalar, type Node, parseDocument } from "yaml";
import { z } from "zod";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RunFolder } from "../../runs/runFolder.ts";

type Values = DaemonResult<"run/config">["values"];
type Environments = DaemonResult<"run/config">["environments"];

/** @throws RUN_FOLDER_INVALID */
export function readConfigTable(folder: RunFolder): Values {
  const values: Values = [];
  const walk = (node: Node | null, path: readonly string[]) => {
    if (isMap(node) && node.items.length > 0) {
      for (const { key, value } of node.items)
        walk(value as Node | null, [...path, String(isScalar(key) ? key.value : key)]);
      return;
    }
    const origin = (node?.comment ?? node?.commentBefore ?? "").trim();
    values.push({ key: path.join("."), value: node?.toJSON() ?? null, origin: origin === "" ? "default" : origin });
  };
  try {
    const document = parseDocument(readFileSync(folder.config, "utf8"));
    walk(document.contents as Node | null, []);
    return values;
  } catch (cause) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `${folder.config} is not the configuration of a run.`, {
      next: "Restore the file, or start a new run.",
      cause,
      at: { path: folder.config },
    });
  }
}

const environmentsSchema = z.object({ attempts: z.array(z.looseObject({ attempt: z.int() })) });

/** Of each attempt that wrote one. */
export function readEnvironments(folder: RunFolder): Environments {
  try {
    const { attempts } = environmentsSchema.parse(JSON.parse(readFileSync(folder.environment, "utf8")));
    return attempts.map(({ attempt, ...environment }) => ({ attempt, environment }));
  } catch {
    return [];
  }
}
