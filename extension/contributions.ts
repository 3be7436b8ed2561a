// The typed surface of the extension: every command, setting, context key and view by name. package.json is checked against it by
// a test, both ways. Loaded at activation, so it imports nothing.

/** Where a command can be started. `item`: only from a line of a view. `link`: from within (status bar, trees), never by hand. */
export type CommandPlace = "palette" | "item" | "view" | "link";

interface CommandFacts {
  readonly place: CommandPlace;
  /** Runs code of the folder: refused until the person trusts it. */
  readonly needsTrust: boolean;
}

function command(place: CommandPlace, needsTrust = false): CommandFacts {
  return { place, needsTrust };
}

export const commands = {
  "rollscope.runRecipe": command("palette", true),
  "rollscope.debugRecipe": command("palette", true),
  "rollscope.newRecipe": command("palette"),
  "rollscope.checkEnvironment": command("palette"),
  "rollscope.stopRun": command("palette"),
  "rollscope.pauseRun": command("palette"),
  "rollscope.resumeRun": command("palette", true),
  "rollscope.openDashboard": command("palette"),
  "rollscope.compareRuns": command("palette"),
  "rollscope.openTrajectory": command("palette"),
  "rollscope.diffTrajectories": command("palette"),
  "rollscope.importTrajectories": command("palette"),
  "rollscope.exportRun": command("palette"),
  "rollscope.explainZeroLoss": command("palette"),
  "rollscope.showDaemonLog": command("palette"),
  "rollscope.showRunLog": command("item"),
  "rollscope.removeRun": command("item"),
  "rollscope.openRecipe": command("item"),
  "rollscope.refresh": command("view"),
  "rollscope.sortTrajectories": command("view"),
  "rollscope.filterTrajectories": command("view"),
  "rollscope.chooseStep": command("view"),
  "rollscope.moreTrajectories": command("link"),
  "rollscope.showActions": command("link"),
  "rollscope.choosePayload": command("link"),
} as const satisfies Record<string, CommandFacts>;
export type CommandId = keyof typeof commands;
export const commandIds = Object.keys(commands) as CommandId[];

export interface Settings {
  /** Folder or command of the payload; empty: look for one. */
  readonly "rollscope.payload": string;
  /** Where new runs are made; empty: `runs` beside the recipe. */
  readonly "rollscope.runs.outputDir": string;
  /** What opens when a run begins. */
  readonly "rollscope.runs.open": "dashboard" | "nothing";
}
export const settingNames = [
  "rollscope.payload",
  "rollscope.runs.outputDir",
  "rollscope.runs.open",
] as const satisfies readonly (keyof Settings)[];

export interface ContextKeys {
  readonly "rollscope.connection": "idle" | "connecting" | "connected" | "waiting" | "failed";
  readonly "rollscope.hasRuns": boolean;
  readonly "rollscope.runSelected": boolean;
  /** Completion events of the walkthrough. */
  readonly "rollscope.environmentChecked": boolean;
}
export const contextKeyNames = [
  "rollscope.connection",
  "rollscope.hasRuns",
  "rollscope.runSelected",
  "rollscope.environmentChecked",
] as const satisfies readonly (keyof ContextKeys)[];

export const views = ["rollscope.clusters", "rollscope.runs", "rollscope.recipes", "rollscope.trajectories"] as const;
export type ViewId = (typeof views)[number];

export const panelTypes = { dashboard: "rollscope.dashboard", inspector: "rollscope.inspector" } as const;
export const trajectoryEditorType = "rollscope.trajectoryFile";
export const taskType = "rollscope";
export const walkthroughId = "rollscope.start";
/** Documents that the extension writes to be read: reports, logs, explanations. */
export const reportScheme = "rollscope-report";
/** Looks of such a document: no line numbers, no map, long lines wrapped. */
export const reportLanguage = "rollscope-report";
