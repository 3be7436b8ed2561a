// What is known of the trajectory as a whole: rewards, facts, its task, and what its source says besides.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { jsonText } from "../../protocol/json.ts";
import { countText, numberText } from "../shared/text.ts";
import { LongText } from "./longText.tsx";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

interface PageProps {
  readonly page: InspectorPage;
}

export function Details({ page }: PageProps) {
  const words = inspectorWords();
  const { row, reward, payload, fields, metadata, tools } = page.outline.value!;
  const names = words.factNames;
  const facts: [string | undefined, string | null][] = [
    [names["id"], row.id],
    [names["task"], row.taskName ?? row.task],
    [names["group"], row.group],
    [names["sample"], row.sample === null ? null : countText(row.sample)],
    [names["attempt"], row.attempt === null ? null : countText(row.attempt)],
    [names["split"], row.split],
    [names["status"], row.status],
    [names["score"], row.score === null ? null : numberText(row.score, 8)],
    [names["steps"], row.steps.length === 0 ? null : row.steps.join(", ")],
    [names["promptTokens"], row.promptTokens === null ? null : countText(row.promptTokens)],
    [names["outputTokens"], row.outputTokens === null ? null : countText(row.outputTokens)],
    [names["toolErrors"], row.toolErrors === 0 ? null : countText(row.toolErrors)],
    [names["driftedCalls"], row.driftedCalls === 0 ? null : countText(row.driftedCalls)],
    [names["staleness"], row.staleness === null ? null : countText(row.staleness)],
    [names["mismatch"], row.mismatch === null ? null : numberText(row.mismatch, 6)],
    [names["truncated"], row.truncated ? words.yes : null],
    [names["error"], row.error === null ? null : `${row.error.code}: ${row.error.message}`],
    [names["labels"], row.labels.length === 0 ? null : row.labels.join(", ")],
  ];
  const rewards = Object.entries(reward);
  return (
    <div class="details">
      <Section title={words.rewards}>
        {rewards.length === 0 ? (
          <p class="muted">{words.noRewards}</p>
        ) : (
          <Facts
            facts={rewards.map(([name, value]) => [
              name,
              typeof value === "number" ? numberText(value, 8) : String(value ?? "–"),
            ])}
          />
        )}
      </Section>
      <Section title={words.facts}>
        <Facts facts={facts.filter((fact): fact is [string, string] => fact[1] !== null)} />
      </Section>
      <Json page={page} title={words.payload} value={payload} />
      <Json page={page} title={words.fields} value={fields} />
      <Json page={page} title={words.metadata} value={metadata} />
      <Json page={page} title={words.tools} value={tools.length === 0 ? null : tools} />
    </div>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Facts({ facts }: { readonly facts: readonly (readonly [string, string])[] }) {
  return (
    <dl class="fact-list">
      {facts.slice(0, 60).map(([name, value]) => (
        <div key={name}>
          <dt class="muted">{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Json({ page, title, value }: PageProps & { readonly title: string; readonly value: unknown }) {
  const text = useMemo(() => jsonText(value), [value]);
  if (value === null || (typeof value === "object" && Object.keys(value as object).length === 0)) return null;
  return (
    <Section title={title}>
      <LongText
        page={page}
        text={text}
        length={text.length}
        read={(from, to) => Promise.resolve(text.slice(from, to))}
      />
    </Section>
  );
}
