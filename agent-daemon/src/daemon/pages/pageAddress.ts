// Addresses of pages in a browser: what a page shows stands in its address, so that it can be reloaded and kept as a bookmark.
import { type PageState, pageStateSchema } from "../../../../protocol/pageHost.ts";

/** Path and query of a page. */
export function pagePath(state: PageState): string {
  return `/${state.page}?state=${encodeURIComponent(JSON.stringify(state))}`;
}

/** null when the address names no page. */
export function stateOfAddress(url: URL): PageState | null {
  try {
    return pageStateSchema.parse(JSON.parse(url.searchParams.get("state") ?? ""));
  } catch {
    return null;
  }
}
