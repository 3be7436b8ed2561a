// What an editor can offer to mend a problem of recipe.yaml: edits of the text, each with a title. A fix is offered only where it
// is certain what it would write; nothing is applied here.
import { parseDocument } from "yaml";
import type { RecipeDiagnostic, TextEdit } from "../../../protocol/daemonMethods.ts";
import { type RecipeKey, recipeKey, type SchemaNode } from "../../../protocol/recipeKeys.ts";
import { nearestName } from "./configKeys.ts";
import type { ConfigProblem } from "./configProblem.ts";
import { modelSources } from "./modelSource.ts";
import type { YamlPlace, YamlPlaces } from "./yamlPlaces.ts";

type Fix = RecipeDiagnostic["fixes"][number];

interface FixContext {
  readonly schema: SchemaNode;
  readonly places: YamlPlaces;
  /** Name that a recipe without one gets. */
  readonly folderName: string;
}

/** What a needed key without a default is first written as. */
function examples({ schema, folderName }: FixContext, path: string): readonly string[] {
  switch (path) {
    case "name":
      return [JSON.stringify(folderName)];
    case "model":
      return [`source: ${Object.keys(modelSources)[0]}`];
    case "model.source":
      return Object.keys(modelSources).slice(0, 3);
    case "data":
      return ["train: train.jsonl"];
    case "data.train":
      return ["train.jsonl"];
    case "objective":
      return ["kind: grpo\naggregation: token-mean"];
    case "advantages":
      return ["estimator: group_normalized"];
    case "objective.lengthNormalizer":
      return ["256"];
    case "objective.cap":
    case "objective.softClip":
      return ["3"];
    case "objective.kl.coef":
      return ["0.03"];
    case "advantages.gamma":
    case "advantages.lambda":
      return ["1"];
    default: {
      const key = recipeKey(schema, path.split("."));
      return key === null ? [] : key.values.slice(0, 6).map(String);
    }
  }
}

function edit({ range, newText }: TextEdit, title: string, ...also: TextEdit[]): Fix {
  return { title, newText, range, ...(also.length === 0 ? {} : { also }) };
}

function mayEmpty(schema: SchemaNode) {
  return (path: readonly string[]) => recipeKey(schema, path)?.required === false;
}

function removal(context: FixContext, place: YamlPlace): Fix {
  const { places, schema } = context;
  return edit(places.removal(place, mayEmpty(schema)), `Remove ${place.path.join(".")}`);
}

/** The part of a file's path that says which profile it lies in. */
function profileOf(path: readonly string[]): readonly string[] {
  return path[0] === "profiles" && path.length > 2 ? path.slice(0, 2) : [];
}

function unknownKey(context: FixContext, problem: ConfigProblem, place: YamlPlace): Fix[] {
  const { places } = context;
  const fixes: Fix[] = [];
  if (problem.nearest !== undefined) {
    const target = [...profileOf(place.path), ...problem.nearest.split(".")];
    const beside = JSON.stringify(target.slice(0, -1)) === JSON.stringify(place.path.slice(0, -1));
    const taken = places.at(target) !== null;
    if (beside && !taken) {
      fixes.push({ title: `Rename to ${target.at(-1)}`, newText: target.at(-1)!, range: places.range(place.key) });
    } else if (!taken && place.value !== null) {
      const written = places.textOf(place.value);
      const put = written.includes("\n") ? null : places.insertion(target, written);
      if (put !== null)
        fixes.push(
          edit(
            places.removal(place, () => false),
            `Move to ${problem.nearest}`,
            put,
          ),
        );
    }
  }
  return [...fixes, removal(context, place)];
}

function wrongValue(context: FixContext, problem: ConfigProblem, place: YamlPlace): Fix[] {
  const { places, schema } = context;
  const { value } = place;
  if (value === null) return [];
  const written = places.textOf(value);
  const key = recipeKey(schema, place.path);
  const range = places.range(value);
  const replace = (text: string): Fix => ({ title: `Change to ${text}`, newText: text, range });
  const candidates = (problem.allowed ?? []).map((text) => String(JSON.parse(text)));
  if (candidates.length > 0) {
    const nearest = nearestName(written.replace(/^["']|["']$/g, ""), candidates);
    const rest = candidates.filter((each) => each !== nearest).slice(0, 5);
    return [...(nearest === null ? [] : [nearest]), ...rest].map(replace);
  }
  return unquoted(key, written).map(replace);
}

/** A number in quotes without them, a text that YAML takes for something else in them. */
function unquoted(key: RecipeKey | null, written: string): string[] {
  if (key === null) return [];
  const inner = /^(["'])(.*)\1$/.exec(written)?.[2];
  if (inner !== undefined && /number|integer|true/.test(key.accepts)) {
    const read: unknown = parseDocument(inner).toJS();
    return typeof read === "number" || typeof read === "boolean" ? [inner] : [];
  }
  const wantsText = key.accepts === "text" || key.accepts.startsWith("text or");
  return inner === undefined && wantsText && !/["'\n{[]/.test(written) ? [JSON.stringify(written)] : [];
}

/** Fixes of one problem; `place` is the key it was found at, if it stands in the text. */
export function quickFixes(context: FixContext, problem: ConfigProblem, place: YamlPlace | null): Fix[] {
  switch (problem.code) {
    case "CONFIG_KEY_UNKNOWN":
      return place === null ? [] : unknownKey(context, problem, place);
    case "CONFIG_KEY_UNREAD":
      return place === null || place.path.length <= profileOf(place.path).length ? [] : [removal(context, place)];
    case "CONFIG_KEY_MISSING": {
      const path = problem.path.split(".");
      const texts = problem.allowed?.slice(0, 6).map((text) => String(JSON.parse(text)));
      return (texts ?? examples(context, problem.path)).flatMap((text) => {
        const put = context.places.insertion(path, text);
        return put === null ? [] : [edit(put, `Insert ${problem.path}: ${text.replace(/\s*\n\s*/g, ", ")}`)];
      });
    }
    case "CONFIG_CONFLICT":
    case "OBJECTIVE_REFUSED":
      return place === null || recipeKey(context.schema, place.path)?.required !== false
        ? []
        : [removal(context, place)];
    case "CONFIG_VALUE_INVALID":
      return place === null ? [] : wrongValue(context, problem, place);
    default:
      return [];
  }
}
