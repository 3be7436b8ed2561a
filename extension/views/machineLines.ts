// Lines of the Clusters view: this machine as the daemon sees it now. Pure.
import type { z } from "zod";
import type { HelloResult, machineStateSchema } from "../../protocol/daemonMethods.ts";
import type { RunSummary } from "../../protocol/runView.ts";
import type { Fault } from "../daemon/fault.ts";
import { isActive } from "../runs/runsModel.ts";
import type { TreeLine } from "./treeLine.ts";

export type MachineState = z.infer<typeof machineStateSchema>;

const units = ["B", "KB", "MB", "GB", "TB"] as const;

/** Powers of 1024, one decimal from GB on. */
export function shortBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit < 3 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const percent = (share: number) => `${Math.round(share * 100)} %`;

export function machineLines(
  hello: HelloResult | null,
  state: MachineState | null,
  runs: readonly RunSummary[],
): TreeLine[] {
  if (hello === null) return [];
  const { machine } = hello;
  const active = runs.filter(isActive).length;
  const load = state === null ? "" : ` · CPU ${percent(state.cpu)}`;
  return [
    {
      id: "machine",
      label: "This machine",
      description: `${active === 0 ? "idle" : active === 1 ? "1 run" : `${active} runs`}${load}`,
      icon: "vm-active",
      expanded: true,
      tooltip: [
        machine.hostname,
        `${machine.cpus} × ${machine.cpuModel}`,
        `${machine.platform}, Node ${machine.node}`,
        `Daemon ${hello.version}, process ${hello.pid}`,
      ],
      context: "machine",
      children: state === null ? [] : stateLines(hello, state),
    },
  ];
}

function stateLines(hello: HelloResult, state: MachineState): TreeLine[] {
  const { memory, disk, gpus } = state;
  const used = memory.total - memory.available;
  return [
    {
      id: "machine.cpu",
      label: "CPU",
      description: `${percent(state.cpu)} of ${hello.machine.cpus} processors`,
      icon: "pulse",
      tooltip: [hello.machine.cpuModel],
    },
    {
      id: "machine.memory",
      label: "Memory",
      description: `${shortBytes(used)} of ${shortBytes(memory.total)}, ${shortBytes(memory.available)} available`,
      icon: "circuit-board",
    },
    ...(disk === null
      ? []
      : [
          {
            id: "machine.disk",
            label: "Disk",
            description: `${shortBytes(disk.free)} free of ${shortBytes(disk.total)}`,
            icon: "database",
            tooltip: [disk.path],
          },
        ]),
    ...(gpus.length === 0
      ? [
          {
            id: "machine.gpus",
            label: "GPUs",
            description: "none; the embedded engine runs on the CPU",
            icon: "server",
          },
        ]
      : gpus.map((gpu, index) => ({
          id: `machine.gpu-${index}`,
          label: `GPU ${index}`,
          description: `${percent(gpu.utilisation)} · ${shortBytes(gpu.memoryUsed)} of ${shortBytes(gpu.memoryTotal)}`,
          icon: "server",
          tooltip: [gpu.name],
        }))),
  ];
}

/** Instead of the lines of a view: why they cannot be seen, and what helps. */
export function faultLines(view: string, fault: Fault): TreeLine[] {
  const command = { id: "rollscope.checkEnvironment", arguments: [] } as const;
  return [
    {
      id: `${view}.fault`,
      label: fault.message,
      icon: "error",
      color: "charts.red",
      tooltip: [`${fault.message} (${fault.code})`],
      command,
    },
    { id: `${view}.next`, label: fault.next, icon: "arrow-right", tooltip: [fault.next], command },
  ];
}
