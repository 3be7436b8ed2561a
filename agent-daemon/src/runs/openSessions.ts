// Opens a captured session for each record that the scheduler samples: the run's engine, text and store put together with the
// record's settings and random streams.
import { captureModel, openCaptureSession } from "../capture/openSession.ts";
import type { CapturedTrajectory } from "../capture/trajectories.ts";
import type { InferenceEngine } from "../engines/interface.ts";
import type { ModelText } from "../engines/tokenizer/load.ts";
import type { Clock } from "../sampling/clock.ts";
import { agentSeed, streamHash } from "../sampling/recordIds.ts";
import type { OpenSession } from "../sampling/session.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";

export interface SessionParts {
  readonly run: string;
  readonly seed: number;
  readonly truncated: "mask" | "keep";
  readonly inference: InferenceEngine;
  readonly text: ModelText;
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/** Prompts that are compared with a whole render of their conversation, beside the first of each shape. */
const verifyFraction = 0.01;

/** @throws CAPTURE_TEMPLATE_MISSING, TEMPLATE_INVALID */
export function openSessions(parts: SessionParts): OpenSession<readonly CapturedTrajectory[]> {
  const { run, seed, truncated, store, blobs, clock } = parts;
  const model = captureModel(parts.inference, parts.text);
  return ({ record, settings, streamKey, signal, onCall }) =>
    openCaptureSession({
      record,
      settings: { ...settings, history: "exact", callLimit: null, verifyFraction },
      model,
      key: { seed, record: streamHash(streamKey) },
      agentSeed: agentSeed(seed, streamKey),
      signal,
      onCall,
      truncated,
      store: { run, records: store, blobs },
      now: clock.now,
      after: clock.after,
    });
}
