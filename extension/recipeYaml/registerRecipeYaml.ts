// Makes an editor know recipe.yaml: completion and hover from what is bundled, diagnostics and quick fixes from the daemon's check. A
// daemon that is not there takes away the latter and nothing else. Never starts a run, never runs recipe code.
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import type {
  DaemonMethod,
  DaemonParams,
  DaemonResult,
  RecipeDiagnostic,
  TextRange,
} from "../../protocol/daemonMethods.ts";
import { completionsAt, hoverAt, type ValueInForce } from "./recipeLanguage.ts";

/** The part of the daemon's connection that is used. */
export interface RecipeDaemon {
  request<M extends DaemonMethod>(method: M, params: DaemonParams<M>): Promise<DaemonResult<M>>;
}

const selector: vscode.DocumentSelector = { scheme: "file", pattern: "**/recipe.yaml" };
const isRecipe = (document: vscode.TextDocument) => vscode.languages.match(selector, document) > 0;
/** After the last key stroke, until the text is checked. */
const pause = 250;

const severities = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  // Nothing is wrong: no squiggle, and no line among the problems.
  hint: vscode.DiagnosticSeverity.Hint,
} as const;

const kinds = {
  section: vscode.CompletionItemKind.Module,
  key: vscode.CompletionItemKind.Property,
  value: vscode.CompletionItemKind.EnumMember,
} as const;

function rangeOf(range: TextRange | null): vscode.Range {
  return range === null
    ? new vscode.Range(0, 0, 0, 0)
    : new vscode.Range(range.line, range.column, range.endLine, range.endColumn);
}

function plainMarkdown(text: string): vscode.MarkdownString {
  const markdown = new vscode.MarkdownString(text);
  markdown.isTrusted = false;
  markdown.supportHtml = false;
  return markdown;
}

/** Diagnostics of one recipe as the daemon found them, with what a code action needs. */
interface Checked {
  readonly version: number;
  readonly found: readonly { readonly shown: vscode.Diagnostic; readonly diagnostic: RecipeDiagnostic }[];
}

/** Registers everything; what is registered ends with the context. */
export function registerRecipeYaml(context: vscode.ExtensionContext, daemon: RecipeDaemon): void {
  const problems = vscode.languages.createDiagnosticCollection("rollscope");
  const checked = new Map<string, Checked>();
  /** Files beside a recipe.yaml that its last check said something about. */
  const others = new Map<string, vscode.Uri[]>();
  const timers = new Map<string, NodeJS.Timeout>();

  const check = async (document: vscode.TextDocument) => {
    const { version, uri } = document;
    const key = uri.toString();
    const text = document.getText();
    let diagnostics: readonly RecipeDiagnostic[];
    try {
      const request = { folder: dirname(uri.fsPath), text };
      diagnostics = (await daemon.request("recipe/check", request)).diagnostics;
    } catch {
      // Without a daemon nothing is known to be wrong; its own state says that it is missing.
      return;
    }
    if (document.isClosed || document.version !== version) return;
    const byFile = new Map<string, vscode.Diagnostic[]>();
    const found = diagnostics.map((diagnostic) => {
      const message = `${diagnostic.message} ${diagnostic.next}`.trim();
      const shown = new vscode.Diagnostic(rangeOf(diagnostic.range), message, severities[diagnostic.severity]);
      shown.code = diagnostic.code;
      shown.source = "rollscope";
      if (diagnostic.code === "CONFIG_KEY_UNREAD") shown.tags = [vscode.DiagnosticTag.Unnecessary];
      const file = diagnostic.file === uri.fsPath ? key : vscode.Uri.file(diagnostic.file).toString();
      byFile.set(file, [...(byFile.get(file) ?? []), shown]);
      return { shown, diagnostic };
    });
    checked.set(key, { version, found });
    for (const old of others.get(key) ?? []) problems.delete(old);
    others.set(
      key,
      [...byFile.keys()].filter((file) => file !== key).map((file) => vscode.Uri.parse(file)),
    );
    problems.set(uri, byFile.get(key) ?? []);
    for (const [file, list] of byFile) if (file !== key) problems.set(vscode.Uri.parse(file), list);
  };

  const later = (document: vscode.TextDocument, milliseconds: number) => {
    if (!isRecipe(document)) return;
    const key = document.uri.toString();
    clearTimeout(timers.get(key));
    timers.set(
      key,
      setTimeout(() => {
        timers.delete(key);
        void check(document);
      }, milliseconds),
    );
  };
  const forget = (document: vscode.TextDocument) => {
    const key = document.uri.toString();
    clearTimeout(timers.get(key));
    timers.delete(key);
    checked.delete(key);
    problems.delete(document.uri);
    for (const other of others.get(key) ?? []) problems.delete(other);
    others.delete(key);
  };
  const recheckBeside = (document: vscode.TextDocument) => {
    const folder = dirname(document.uri.fsPath);
    for (const open of vscode.workspace.textDocuments)
      if (isRecipe(open) && dirname(open.uri.fsPath) === folder) later(open, 0);
  };

  context.subscriptions.push(
    problems,
    { dispose: () => timers.forEach((timer) => void clearTimeout(timer)) },
    vscode.workspace.onDidOpenTextDocument((document) => later(document, 0)),
    vscode.workspace.onDidChangeTextDocument(({ document }) => later(document, pause)),
    vscode.workspace.onDidSaveTextDocument(recheckBeside),
    vscode.workspace.onDidCloseTextDocument(forget),
    vscode.languages.registerCompletionItemProvider(selector, { provideCompletionItems }, " ", ":", "{", ","),
    vscode.languages.registerHoverProvider(selector, { provideHover: (document, at) => hover(document, at, daemon) }),
    vscode.languages.registerCodeActionsProvider(
      selector,
      { provideCodeActions: (document, range) => actions(document, range, checked.get(document.uri.toString())) },
      { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] },
    ),
  );
  for (const document of vscode.workspace.textDocuments) later(document, 0);
}

function provideCompletionItems(document: vscode.TextDocument, at: vscode.Position): vscode.CompletionItem[] {
  return completionsAt(document.getText(), at.line, at.character).map((completion) => {
    const item = new vscode.CompletionItem(completion.label, kinds[completion.kind]);
    item.detail = completion.detail;
    item.documentation = plainMarkdown(completion.documentation);
    item.insertText = new vscode.SnippetString(completion.snippet.replaceAll(/[\\}]/g, "\\$&"));
    item.range = new vscode.Range(at.line, completion.from, at.line, completion.to);
    item.sortText = completion.sort;
    // The indentation is written out: the editor would add its own to it.
    item.keepWhitespace = true;
    return item;
  });
}

async function hover(
  document: vscode.TextDocument,
  at: vscode.Position,
  daemon: RecipeDaemon,
): Promise<vscode.Hover | null> {
  const text = document.getText();
  if (hoverAt(text, at.line, at.character, []) === null) return null;
  const folder = dirname(document.uri.fsPath);
  let values: readonly ValueInForce[] = [];
  try {
    const answer = (await daemon.request("recipe/values", { folder, text })).values as ValueInForce[];
    // Places in the recipe's own folder are told by their names in it.
    values = answer.map((value) => ({ ...value, origin: value.origin.replace(join(folder, "/"), "") }));
  } catch {
    // The meaning is known without the daemon.
  }
  const found = hoverAt(text, at.line, at.character, values);
  if (found === null) return null;
  return new vscode.Hover(plainMarkdown(found.text), new vscode.Range(found.line, found.from, found.line, found.to));
}

function actions(
  document: vscode.TextDocument,
  range: vscode.Range,
  checked: Checked | undefined,
): vscode.CodeAction[] {
  if (checked === undefined || checked.version !== document.version) return [];
  return checked.found
    .filter(({ shown, diagnostic }) => diagnostic.file === document.uri.fsPath && shown.range.intersection(range))
    .flatMap(({ shown, diagnostic }) =>
      diagnostic.fixes.map((fix, index) => {
        const action = new vscode.CodeAction(fix.title, vscode.CodeActionKind.QuickFix);
        action.diagnostics = [shown];
        action.isPreferred = index === 0 && !fix.title.startsWith("Remove");
        action.edit = new vscode.WorkspaceEdit();
        action.edit.replace(document.uri, rangeOf(fix.range ?? diagnostic.range), fix.newText);
        for (const { range: also, newText } of fix.also ?? [])
          action.edit.replace(document.uri, rangeOf(also), newText);
        return action;
      }),
    );
}
