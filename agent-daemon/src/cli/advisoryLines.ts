// Advisories as a terminal shows them: a picture has the worst one with its likeliest cause, plain lines say each once. Pure; what is
// noticed is decided in runs/advisories.
import type { Advisory, AdvisoryLink } from "../../../protocol/advisory.ts";
import type { Color, Paint } from "./terminal/colors.ts";
import { harmless, truncate, visible, wrap } from "./terminal/text.ts";

const colors: Readonly<Record<Advisory["severity"], Color>> = { severe: "red", warning: "yellow", note: "cyan" };

/** Lower pictures have the sentence alone, on one line. */
const roomy = 18;
const mostSentenceLines = 2;

/** Lines of a live picture; none is wider than `width`. */
export function advisoryPicture(
  advisories: readonly Advisory[],
  size: { readonly width: number; readonly height: number },
  paint: Paint,
): string[] {
  const [worst, ...others] = advisories;
  if (worst === undefined) return [];
  const { width, height } = size;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  const sentence = visible(`! ${worst.sentence}${more}`);
  const color = colors[worst.severity];
  if (height < roomy) return [paint(color, truncate(sentence, width))];
  const [cause] = worst.causes;
  return [
    ...wrap(sentence, width, mostSentenceLines).map((line) => paint(color, line)),
    ...(cause === undefined ? [] : [paint("dim", truncate(visible(`  Perhaps: ${cause}`), width))]),
  ];
}

const toldCauses = 2;

/** One line, whole: what is the case, its likeliest causes, and where to look on. */
export function advisoryLine({ kind, sentence, causes, links }: Advisory): string {
  const perhaps = causes.length === 0 ? "" : ` Perhaps: ${causes.slice(0, toldCauses).join(" Or: ")}`;
  const places = links.length === 0 ? "" : ` Look at ${links.map(place).join(", ")}.`;
  return harmless(`advisory: ${sentence}${perhaps}${places} [${kind}]`);
}

function place(link: AdvisoryLink): string {
  switch (link.kind) {
    case "step":
      return `the trajectories of step ${link.step}`;
    case "record":
      return link.record;
    case "metric":
      return link.metric;
    case "recipeKey":
      return `${link.key} in recipe.yaml`;
  }
}

/** Tells advisories that were not told yet; one that got worse is told again. */
export function advisoryTeller(): (inForce: readonly Advisory[]) => string[] {
  const told = new Set<string>();
  return (inForce) =>
    inForce.flatMap((advisory) => {
      const key = `${advisory.kind} ${advisory.from} ${advisory.severity}`;
      if (told.has(key)) return [];
      told.add(key);
      return [advisoryLine(advisory)];
    });
}
