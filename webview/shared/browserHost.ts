// What a page in a plain browser does itself, where the editor's extension would do it: the clipboard, saving a file, going to another
// page. The daemon's page server can do none of these.
import { hostMethods, hostNotifications, type PageMessage } from "../../protocol/pageHost.ts";

/** null: not for this side; it goes to the server. */
export function answerInBrowser(message: PageMessage): Promise<PageMessage> | null {
  if (message.kind !== "request") return null;
  const { id, method, params } = message;
  const answered: PageMessage = { kind: "result", id, result: {} };
  switch (method) {
    case "host/copy": {
      const { text } = hostMethods[method].params.parse(params);
      return navigator.clipboard.writeText(text).then(
        () => answered,
        (error: unknown) => refused(id, `The browser did not let the text be copied: ${String(error)}.`),
      );
    }
    case "host/saveText": {
      const { name, text } = hostMethods[method].params.parse(params);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
      link.download = name;
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      return Promise.resolve(answered);
    }
    default:
      return null;
  }
}

function refused(id: number, message: string): PageMessage {
  const error = { code: "PAGE_HOST_UNSUPPORTED", message, next: "Select the text and copy it.", retryable: true };
  return { kind: "error", id, error };
}

/** Goes where the server says, within this origin only; false when the message says something else. */
export function navigateInBrowser(message: PageMessage): boolean {
  if (message.kind !== "notification" || message.method !== "host/navigate") return false;
  const { url, beside } = hostNotifications["host/navigate"].parse(message.params);
  const target = new URL(url, location.href);
  if (target.origin !== location.origin) return true;
  if (beside) window.open(target, "_blank", "noopener");
  else location.assign(target);
  return true;
}
