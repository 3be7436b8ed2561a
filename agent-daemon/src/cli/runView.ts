// Shows a run while it goes on in this process: redrawn in place on a terminal, one line an event elsewhere. With --json
// nothing is shown but warnings and advisories.
import type { JournalEvent } from "../../../protocol/journal.ts";
import { advisoryMilliseconds, watchAdvisories } from "../runs/advisories/watch.ts";
import type { PhaseProgress, RunObserver } from "../runs/runContext.ts";
import type { Clock } from "../sampling/clock.ts";
import { advisoryTeller } from "./advisoryLines.ts";
import { renderLive } from "./liveView.ts";
import type { Output } from "./output.ts";
import { plainLines } from "./plainView.ts";
import { foldEvent, noProgress, type RunProgress } from "./runProgress.ts";
import { createScreen, type Screen, type TerminalStream } from "./terminal/screen.ts";

export interface RunView extends RunObserver {
  state(): RunProgress;
  /** Says something that the user asked for. */
  notice(text: string): void;
  /** Leaves the last picture where it is; doing it again does nothing. */
  dispose(): void;
}

/** How often the clock of the live picture moves. */
const tick = 1000;

/** @param earlier what earlier attempts wrote */
export function createRunView(
  output: Output,
  stream: TerminalStream,
  clock: Clock,
  earlier: readonly JournalEvent[],
): RunView {
  // An attempt is told of when its model is open; until then the times of the one before are not its own.
  const begun = clock.now();
  const before = earlier.reduce(foldEvent, noProgress);
  let progress: RunProgress = { ...before, attemptBegun: begun, mark: begun, phase: "opening", ended: null };
  const advisories = watchAdvisories(clock);
  for (const event of earlier) advisories.read(event);
  let tell = advisoryTeller();
  // What earlier attempts showed is not told again, unless this attempt has it anew.
  const forgetTold = () => {
    tell = advisoryTeller();
    tell(advisories.inForce(false));
  };
  forgetTold();
  const tellNews = () => output.lines(tell(advisories.inForce(true)));
  let phase: PhaseProgress | null = null;
  let notice: string | null = null;
  let screen: Screen | null = null;
  let stopTicking = () => {};
  if (output.isTerminal) {
    const opened = createScreen(stream, clock, (size) =>
      renderLive(
        { progress, phase, now: clock.now(), advisories: advisories.inForce(progress.ended === null), notice },
        size,
        output.paint,
      ),
    );
    const keepTicking = () => {
      opened.invalidate();
      stopTicking = clock.after(tick, keepTicking);
    };
    screen = opened;
    keepTicking();
  } else {
    // A phase that lasts too long brings no event.
    const keepLooking = () => {
      stopTicking = clock.after(advisoryMilliseconds, () => {
        tellNews();
        keepLooking();
      });
    };
    keepLooking();
  }
  return {
    state: () => progress,
    event(event: JournalEvent) {
      progress = foldEvent(progress, event);
      advisories.read(event);
      if (event.type === "started") forgetTold();
      if (event.type === "phase" || event.type === "ended") phase = null;
      if (screen !== null) {
        screen.invalidate();
        return;
      }
      if (!output.json || event.type === "warning") output.lines(plainLines(event, progress));
      if (event.type === "step") tellNews();
    },
    progress(next) {
      phase = next;
      screen?.invalidate();
    },
    notice(text) {
      notice = text;
      if (screen === null) output.note(text);
      else screen.invalidate();
    },
    dispose() {
      stopTicking();
      screen?.dispose();
      screen = null;
    },
  };
}
