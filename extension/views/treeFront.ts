// A view that stands there before its lines are known: what activation makes and the second bundle fills.
import type * as vscode from "vscode";

export interface TreeFront {
  readonly view: vscode.TreeView<unknown>;
  readonly refresh: () => void;
}
