// Methods about trajectories of runs and files, and about what became of a step's tokens. Open trajectories are kept while clients
// look at them; a client that goes away closes its own.
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { Waterfall } from "../../../../protocol/runView.ts";
import type { TokenColumnName, TrajectoryRow, TrajectorySource } from "../../../../protocol/trajectoryView.ts";
import { explainZeroLoss } from "../explainZeroLoss.ts";
import { fileRow, openFileTrajectory } from "../trajectories/fileTrajectory.ts";
import { createOpenFiles } from "../trajectories/openFiles.ts";
import type { OpenTrajectory } from "../trajectories/openTrajectory.ts";
import { partingPlace } from "../trajectories/parting.ts";
import { listRecords, recordsOfStep } from "../trajectories/recordRows.ts";
import { openRecordTrajectory, type RecordSource } from "../trajectories/recordTrajectory.ts";
import { openRunReaders } from "../trajectories/runReaders.ts";
import { runWaterfall, stepWaterfall, type WaterfallSource } from "../waterfall.ts";
import type { CreateMethods, MethodCall, MethodSession } from "./methodTypes.ts";

type Compared = DaemonResult<"trajectory/diff">["rows"][number];

interface Opened {
  readonly trajectory: Promise<OpenTrajectory>;
  readonly viewers: Set<MethodSession>;
  release(): void;
}

export const trajectoryMethods: CreateMethods = ({ runs, clock }) => {
  const readers = openRunReaders();
  const files = createOpenFiles(clock.now);
  const opened = new Map<string, Opened>();
  const waterfalls = new Map<string, Waterfall>();
  const running = new Map<string, Promise<Waterfall>>();

  /** Whoever asks while a run is being summed up gets that sum: pages ask at every step, and a sum can take longer than one. */
  const runWaterfallOnce = (folder: string): Promise<Waterfall> => {
    const already = running.get(folder);
    if (already !== undefined) return already;
    const found = read(folder, (source) =>
      runWaterfall(waterfallSource(source), async ({ id }, compute) => {
        const key = `${folder} ${id}`;
        const known = waterfalls.get(key) ?? (await compute());
        waterfalls.set(key, known);
        return known;
      }),
    ).finally(() => running.delete(folder));
    running.set(folder, found);
    return found;
  };

  const close = (key: string, session: MethodSession | null) => {
    const entry = opened.get(key);
    if (entry === undefined) return;
    if (session !== null) entry.viewers.delete(session);
    if (session !== null && entry.viewers.size > 0) return;
    opened.delete(key);
    entry.release();
    void entry.trajectory.then((trajectory) => trajectory.dispose()).catch(() => {});
  };

  /** The trajectory of a source, opened when it is not; a session that looked at it closes it when it ends. */
  const trajectoryOf = async (source: TrajectorySource, { session }: MethodCall): Promise<OpenTrajectory> => {
    const key = JSON.stringify(source);
    let entry = opened.get(key);
    if (entry === undefined) {
      entry = open(source, key);
      opened.set(key, entry);
    }
    if (!entry.viewers.has(session)) {
      entry.viewers.add(session);
      session.onEnd(() => close(key, session));
    }
    try {
      return await entry.trajectory;
    } catch (error) {
      close(key, null);
      throw error;
    }
  };

  const open = (source: TrajectorySource, key: string): Opened => {
    const viewers = new Set<MethodSession>();
    let release = () => {};
    const changed = async () => {
      const trajectory = await opened.get(key)?.trajectory;
      if (trajectory === undefined) return;
      const outline = trajectory.outline();
      for (const viewer of viewers) void viewer.notify("trajectory/changed", { source, outline });
    };
    const trajectory = (async () => {
      const tell = () => void changed().catch(() => {});
      if (source.kind === "file") {
        const held = await files.hold(source.path, tell);
        release = held.release;
        return openFileTrajectory(held.file, source.index, tell);
      }
      const held = await readers.hold(runs.folder(source.folder));
      release = held.release;
      return openRecordTrajectory(held.source, source.record, tell);
    })();
    return { trajectory, viewers, release: () => release() };
  };

  /** For as long as the work takes, and without hearing of its changes. */
  const passing = async <T>(source: TrajectorySource, work: (trajectory: OpenTrajectory) => Promise<T>): Promise<T> => {
    const known = opened.get(JSON.stringify(source));
    if (known !== undefined) return await work(await known.trajectory);
    const { trajectory, release } = open(source, "");
    try {
      return await work(await trajectory);
    } finally {
      await trajectory.then((each) => each.dispose()).catch(() => {});
      release();
    }
  };

  const compared = async (own: OpenTrajectory, rows: readonly TrajectoryRow[]): Promise<Compared[]> => {
    const all: Compared[] = [];
    for (const row of rows) all.push({ row, parts: await passing(row.source, (other) => partingPlace(own, other)) });
    return all;
  };

  const read = <T>(folder: string, work: (source: RecordSource) => Promise<T>) =>
    readers.read(runs.folder(folder), work);

  return {
    handlers: {
      "trajectories/list": (request) => read(request.folder, (source) => listRecords(source, request)),
      "trajectories/ofStep": ({ folder, step }) =>
        read(folder, async (source) => ({ rows: await recordsOfStep(source, step) })),
      "trajectory/open": async ({ source }, call) => (await trajectoryOf(source, call)).outline(),
      "trajectory/close": async ({ source }, { session }) => {
        close(JSON.stringify(source), session);
        return {};
      },
      "trajectory/turns": async ({ source, from, to }, call) => ({
        turns: await (await trajectoryOf(source, call)).turns(from, to),
      }),
      "trajectory/part": async ({ source, turn, part, from, to }, call) =>
        (await trajectoryOf(source, call)).part(turn, part, from, to),
      "trajectory/raw": async ({ source, turn }, call) => ({
        text: await (await trajectoryOf(source, call)).raw(turn),
      }),
      "trajectory/tokens": async ({ source, from, to, columns, row }, call) => {
        const trajectory = await trajectoryOf(source, call);
        return call.session.bulk(await trajectory.tokens({ from, to, columns: columns as TokenColumnName[], row }));
      },
      "trajectory/extreme": async ({ source, column, row, most }, call) =>
        (await trajectoryOf(source, call)).extreme(column as TokenColumnName, row, most),
      "trajectory/search": async ({ source, text, fromTurn, limit }, call) =>
        (await trajectoryOf(source, call)).search(text, fromTurn, limit),
      "trajectory/siblings": async ({ source }, call) => {
        const own = await trajectoryOf(source, call);
        return { rows: await compared(own, await own.siblings()) };
      },
      "trajectory/diff": async ({ source, others }, call) => {
        const own = await trajectoryOf(source, call);
        const rows: Compared[] = [];
        for (const other of others) {
          await passing(other, async (trajectory) => {
            rows.push({ row: trajectory.outline().row, parts: await partingPlace(own, trajectory) });
          });
        }
        return { rows };
      },
      "trajectory/image": async ({ source, handle }, call) =>
        call.session.bulk(await (await trajectoryOf(source, call)).image(handle)),
      "file/open": async ({ path }, { session }) => {
        const { file, release } = await files.hold(path, () => {});
        // Kept for the trajectory that is opened next.
        session.onEnd(release);
        return {
          format: file.format,
          rows: file.trajectories().map((summary, index) => fileRow(path, index, summary)),
          complete: file.complete,
          problems: file.problems.map(({ line, message }) => ({ line, message })),
        };
      },
      "run/waterfall": async ({ folder, step }) => {
        if (step === null) return await runWaterfallOnce(folder);
        const found = await read(folder, (source) => stepWaterfall(waterfallSource(source), step));
        if (found === null) throw noStep(folder, step);
        return found;
      },
      "run/explainZeroLoss": ({ folder, step }) =>
        read(folder, async (source) => {
          const found = await explainZeroLoss(waterfallSource(source), step);
          if (found === null) throw noStep(folder, step);
          return found satisfies DaemonResult<"run/explainZeroLoss">;
        }),
    },
    async dispose() {
      for (const key of [...opened.keys()]) close(key, null);
      await readers.dispose();
      await files.dispose();
    },
  };
};

function waterfallSource({ store, blobs, run, config, folder }: RecordSource): WaterfallSource {
  if (config !== null) return { store, blobs, run, config };
  throw new RollscopeError("RUN_FOLDER_INVALID", `The configuration of the run in ${folder} cannot be read.`, {
    next: "Restore config.resolved.yaml in the run's folder.",
    at: { path: folder },
  });
}

function noStep(folder: string, step: number | null): RollscopeError {
  return new RollscopeError("STORE_NOT_FOUND", `The run in ${folder} has no step ${step}.`, {
    next: "Choose a step that was committed.",
  });
}
