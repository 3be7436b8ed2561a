// What the daemon noticed about the run, in words, with ways to look on.
import type { Advisory, AdvisoryLink } from "../../protocol/advisory.ts";
import { countText } from "../shared/text.ts";
import type { DashboardPage } from "./page.ts";
import type { RunModel } from "./runModel.ts";
import { mostPicked } from "./view.ts";
import { dashboardWords } from "./words.ts";

interface AdvisoriesProps {
  readonly page: DashboardPage;
  readonly model: RunModel;
}

export function Advisories({ page, model }: AdvisoriesProps) {
  const words = dashboardWords();
  const { advisories } = model.summary;
  const { warnings } = model;
  if (advisories.length === 0 && warnings.length === 0) return null;
  return (
    <section class="advisories" aria-label={words.advisories}>
      {advisories.map((advisory) => (
        <AdvisoryItem
          key={`${advisory.kind} ${advisory.from}`}
          page={page}
          folder={model.summary.folder}
          advisory={advisory}
        />
      ))}
      {warnings.length > 0 && (
        <details class="advisory note">
          <summary>
            <span class="advisory-mark" aria-hidden="true" />
            {words.warnings(countText(warnings.length))}
          </summary>
          <ul>
            {warnings.slice(-20).map((warning) => (
              <li key={`${warning.at} ${warning.error.message}`}>
                {warning.step !== null && <span class="muted">{words.stepTitle(countText(warning.step))}: </span>}
                {warning.error.message} {warning.error.next}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

interface AdvisoryProps {
  readonly page: DashboardPage;
  readonly folder: string;
  readonly advisory: Advisory;
}

function AdvisoryItem({ page, folder, advisory }: AdvisoryProps) {
  const words = dashboardWords();
  return (
    <details class={`advisory ${advisory.severity} ${advisory.inForce ? "" : "past"}`}>
      <summary>
        <span class="advisory-mark" aria-hidden="true" />
        <span class="visually-hidden">{words.severity[advisory.severity]}: </span>
        <span>{advisory.sentence}</span>
        {!advisory.inForce && <span class="muted"> ({words.noLonger})</span>}
      </summary>
      {advisory.causes.length > 0 && (
        <>
          <p class="muted">{words.causes}</p>
          <ol>
            {advisory.causes.map((cause) => (
              <li key={cause}>{cause}</li>
            ))}
          </ol>
        </>
      )}
      <p class="links">
        {advisory.links.map((link) => (
          <button key={JSON.stringify(link)} type="button" class="link" onClick={() => follow(page, folder, link)}>
            {linkText(link)}
          </button>
        ))}
      </p>
    </details>
  );
}

function linkText(link: AdvisoryLink): string {
  const words = dashboardWords();
  if (link.kind === "step") return words.openStep(countText(link.step));
  if (link.kind === "record") return words.openRecord;
  return link.kind === "metric" ? words.openMetric(link.metric) : words.openKey(link.key);
}

/** What the page can show by itself, it does; the host does the rest. */
function follow(page: DashboardPage, folder: string, link: AdvisoryLink): void {
  if (link.kind === "step") {
    page.change({ step: link.step });
    return;
  }
  if (link.kind === "metric") {
    const { picked } = page.view.peek();
    page.change({
      tab: "charts",
      picked: [...picked.filter((name) => name !== link.metric), link.metric].slice(-mostPicked),
    });
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        document.getElementById(`chart metric ${link.metric}`)?.scrollIntoView({ block: "nearest" }),
      ),
    );
    return;
  }
  page.client.call("host/follow", { folder, link }).catch(page.report);
}
