// Texts that the extension writes for people to read: check results, logs, explanations. Each is a read-only document by name that can
// grow; nothing is written to disk.
import * as vscode from "vscode";
import { reportLanguage, reportScheme } from "./contributions.ts";

export interface Reports {
  readonly text: (uri: vscode.Uri) => string;
  /** Opens the document of that name, or brings it to the front, with the text. */
  readonly show: (name: string, text: string) => Promise<vscode.TextEditor>;
  readonly update: (name: string, text: string) => void;
}

export function createReports(changed: vscode.EventEmitter<vscode.Uri>): Reports {
  const texts = new Map<string, string>();
  const uriOf = (name: string) => vscode.Uri.from({ scheme: reportScheme, path: `/${name}` });
  const update = (name: string, text: string) => {
    texts.set(uriOf(name).path, text);
    changed.fire(uriOf(name));
  };
  return {
    text: (uri) =>
      texts.get(uri.path) ?? "This report was written before the window was reloaded. Run the command again.",
    show: async (name, text) => {
      update(name, text);
      const opened = await vscode.workspace.openTextDocument(uriOf(name));
      // A log has colours of its own.
      const plain = opened.languageId === "plaintext";
      const document = plain ? await vscode.languages.setTextDocumentLanguage(opened, reportLanguage) : opened;
      return await vscode.window.showTextDocument(document, { preview: true });
    },
    update,
  };
}
