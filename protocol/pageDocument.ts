// The HTML of a page (dashboard, inspector): the one document that both hosts serve. It holds no data and no inline code; what
// the page shows arrives by messages.

export interface PageDocument {
  readonly page: "dashboard" | "inspector";
  readonly title: string;
  /** BCP 47, as the editor or the browser says. */
  readonly language: string;
  /** At least 128 random bits, new for every document. */
  readonly nonce: string;
  /** Addresses of the page's bundle. */
  readonly script: string;
  readonly style: string;
  /** What style and font may come from: a webview's cspSource, or 'self'. */
  readonly source: string;
  /** WebSocket address for a page in a browser, relative to the document; null in a webview, which has acquireVsCodeApi. */
  readonly socket: string | null;
}

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const attribute = (text: string) => text.replaceAll(/[&<>"]/g, (letter) => escapes[letter]!);

/** Nothing may run or load but the bundle; a page in a browser may talk to its own host. */
export function pageDocument(page: PageDocument): string {
  // The controls put one style element into the page, to learn what the browser can; they read its nonce from the document.
  const styleNonce = crypto.randomUUID();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${page.nonce}'`,
    `style-src ${page.source} 'nonce-${styleNonce}'`,
    `font-src ${page.source}`,
    "img-src blob: data:",
    ...(page.socket === null ? [] : ["connect-src 'self'"]),
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const socket = page.socket === null ? "" : `\n    <meta name="rollscope-socket" content="${attribute(page.socket)}">`;
  return `<!DOCTYPE html>
<html lang="${attribute(page.language)}">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${attribute(policy)}">
    <meta property="csp-nonce" content="${styleNonce}">
    <meta name="viewport" content="width=device-width, initial-scale=1">${socket}
    <title>${attribute(page.title)}</title>
    <link rel="stylesheet" href="${attribute(page.style)}">
  </head>
  <body>
    <div id="page" class="page-${page.page}"></div>
    <script type="module" nonce="${attribute(page.nonce)}" src="${attribute(page.script)}"></script>
  </body>
</html>
`;
}
