// Methods about runs as a whole: looking, following, starting, steering, removing, their log and configuration.
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ControlCommand } from "../../../../protocol/control.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RunSummary } from "../../../../protocol/runView.ts";
import { askCoordinator } from "../../runs/controlClient.ts";
import { readConfigTable, readEnvironments } from "../runs/runConfig.ts";
import { followRun, goneError, type RunFollower } from "../runs/runFollower.ts";
import { readRunLog } from "../runs/runLog.ts";
import { watchRuns } from "../runs/runWatchers.ts";
import type { CreateMethods, MethodSession } from "./methodTypes.ts";

/** What a session asked to hear of. */
interface Listening {
  readonly followers: Map<string, RunFollower>;
  watcher: { dispose(): void } | null;
}

export const runMethods: CreateMethods = ({ runs, supervisor }) => {
  const sessions = new Map<string, { readonly session: MethodSession; readonly listening: Listening }>();
  const listeningOf = (session: MethodSession): Listening => {
    const known = sessions.get(session.id);
    if (known !== undefined) return known.listening;
    const listening: Listening = { followers: new Map(), watcher: null };
    sessions.set(session.id, { session, listening });
    session.onEnd(() => {
      sessions.delete(session.id);
      for (const follower of listening.followers.values()) follower.dispose();
      listening.watcher?.dispose();
    });
    return listening;
  };

  const offRemoved = runs.onRemoved((folder) => {
    for (const { session, listening } of sessions.values()) {
      const follower = listening.followers.get(folder);
      if (follower === undefined) continue;
      follower.dispose();
      listening.followers.delete(folder);
      void session.notify("run/delta", { kind: "gone", folder, error: goneError(folder) });
    }
  });

  const control = async (folder: string, command: ControlCommand): Promise<RunSummary> => {
    const run = await runs.run(folder);
    const state = await askCoordinator(run.folder, command);
    if (state === null && run.isLive) {
      if (command === "stop-now" && run.end()) return run.summary();
      throw new RollscopeError("RUN_UNANSWERED", `The run ${run.folder.name} is there, but does not answer.`, {
        next: "It stands at a breakpoint, waits for a debugger, or its code does not give control back: continue it in the debugger, or end its process.",
        at: { run: run.folder.run },
      });
    }
    if (state === null) {
      throw new RollscopeError("RUN_NOT_ACTIVE", `The run ${run.folder.name} is not running.`, {
        next: "Resume it: it goes on from its last whole checkpoint.",
        at: { run: run.folder.run },
      });
    }
    run.answered(state);
    return run.summary();
  };

  return {
    handlers: {
      "runs/look": async ({ folders }) => ({ runs: await runs.look(folders) }),
      "runs/watch": async (_, { session }) => {
        const listening = listeningOf(session);
        listening.watcher ??= watchRuns(runs, session);
        return { runs: await runs.list() };
      },
      "runs/unwatch": async (_, { session }) => {
        const listening = listeningOf(session);
        listening.watcher?.dispose();
        listening.watcher = null;
        return {};
      },
      "run/start": (request, { signal }) => supervisor.start(request, signal),
      "run/resume": async ({ folder, debug }, { signal }) => {
        const run = await runs.run(folder);
        const state = await askCoordinator(run.folder, "status");
        if (state?.pausing === true) return { summary: await control(folder, "resume"), debug: null };
        return await supervisor.resume(run, debug, signal);
      },
      "run/stop": ({ folder, now }) => control(folder, now ? "stop-now" : "stop"),
      "run/pause": ({ folder }) => control(folder, "pause"),
      "run/continue": ({ folder }) => control(folder, "resume"),
      "run/remove": async ({ folder, deleteFiles }) => {
        const run = await runs.run(folder);
        if (run.isLive) {
          throw new RollscopeError("RUN_ACTIVE", `${run.folder.name} is running.`, {
            next: "Stop it first.",
            at: { run: run.folder.run },
          });
        }
        if (deleteFiles && existsSync(join(run.path, "journal.jsonl"))) {
          // Its helper may be writing down how it ended.
          await rm(run.path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
        }
        await runs.forget(folder);
        return {};
      },
      "run/follow": async ({ folder, cursor }, { session }) => {
        const run = await runs.run(folder);
        const { followers } = listeningOf(session);
        followers.get(run.path)?.dispose();
        followers.set(run.path, followRun(run, session, cursor));
        return {};
      },
      "run/unfollow": async ({ folder }, { session }) => {
        const { followers } = listeningOf(session);
        followers.get(folder)?.dispose();
        followers.delete(folder);
        return {};
      },
      "run/log": async ({ folder, bytes }) => readRunLog(runs.folder(folder), bytes),
      "run/config": async ({ folder }) => {
        const found = runs.folder(folder);
        return { values: readConfigTable(found), environments: readEnvironments(found) };
      },
    },
    dispose: async () => offRemoved(),
  };
};
