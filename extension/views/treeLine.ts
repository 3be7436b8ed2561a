// The one shape of a line in the views, so that a view is a function from data to lines. Labels are plain text.
import * as vscode from "vscode";
import type { TrajectorySource } from "../../protocol/trajectoryView.ts";
import type { CommandId } from "../contributions.ts";

export interface TreeLine {
  /** Stable over refreshes, so that selection and expansion stay. */
  readonly id: string;
  readonly label: string;
  readonly description?: string;
  readonly icon?: string;
  readonly color?: string;
  readonly tooltip?: readonly string[];
  readonly context?: string;
  readonly command?: { readonly id: CommandId; readonly arguments: readonly unknown[] };
  readonly children?: readonly TreeLine[];
  readonly expanded?: boolean;
  /** What commands on the line are given. */
  readonly folder?: string;
  readonly source?: TrajectorySource;
}

export function isTreeLine(value: unknown): value is TreeLine {
  return typeof value === "object" && value !== null && "id" in value && "label" in value;
}

export function treeItem(line: TreeLine): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const state = (line.children?.length ?? 0) === 0 ? None : line.expanded === true ? Expanded : Collapsed;
  const item = new vscode.TreeItem(line.label, state);
  item.id = line.id;
  if (line.description !== undefined) item.description = line.description;
  if (line.icon !== undefined) {
    item.iconPath = new vscode.ThemeIcon(
      line.icon,
      line.color === undefined ? undefined : new vscode.ThemeColor(line.color),
    );
  }
  if (line.tooltip !== undefined) item.tooltip = plainTooltip(line.tooltip);
  if (line.context !== undefined) item.contextValue = line.context;
  if (line.command !== undefined) {
    item.command = { command: line.command.id, title: line.label, arguments: [...line.command.arguments] };
  }
  const said = line.description === undefined ? line.label : `${line.label}, ${line.description}`;
  item.accessibilityInformation = { label: said };
  return item;
}

/** Lines of text in a tooltip; nothing in them is read as Markdown. */
export function plainTooltip(lines: readonly string[]): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  for (const [index, line] of lines.entries()) {
    if (index > 0) tooltip.appendMarkdown("\n\n");
    tooltip.appendText(line);
  }
  return tooltip;
}
