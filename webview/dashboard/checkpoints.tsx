// Checkpoints of the run and what its folder takes on the disk.
import { DataGrid } from "../shared/controls.tsx";
import { countText, sizeText } from "../shared/text.ts";
import type { RunModel } from "./runModel.ts";
import { dashboardWords } from "./words.ts";

export function Checkpoints({ model }: { readonly model: RunModel }) {
  const words = dashboardWords();
  const { disk } = model;
  const rows = [...model.checkpoints].reverse();
  return (
    <>
      <dl class="facts">
        <dt>{words.disk}</dt>
        <dd>
          {disk === null
            ? words.notCounted
            : `${sizeText(disk.checkpoints + disk.store + disk.blobs)} — ${(["checkpoints", "store", "blobs"] as const)
                .map((part) => `${words.diskParts[part]} ${sizeText(disk[part])}`)
                .join(", ")}`}
        </dd>
      </dl>
      {rows.length === 0 ? (
        <p class="muted">{words.noCheckpoints}</p>
      ) : (
        <DataGrid
          label={words.tabs.checkpoints}
          rows={rows}
          keyOf={(row) => `${row.step} ${row.checkpoint}`}
          columns={[
            { key: "step", title: words.step, numeric: true, width: "6em", cell: (row) => countText(row.step) },
            { key: "checkpoint", title: words.checkpoint, cell: (row) => row.checkpoint },
          ]}
        />
      )}
    </>
  );
}
