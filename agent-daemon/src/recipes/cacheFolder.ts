// Where everything is kept that can be fetched or made again.
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** `$ROLLSCOPE_CACHE`, else `$XDG_CACHE_HOME/rollscope`, else `~/.cache/rollscope`. */
export function cacheFolder(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const chosen = environment["ROLLSCOPE_CACHE"];
  if (chosen) return resolve(chosen);
  const caches = environment["XDG_CACHE_HOME"];
  return join(caches ? resolve(caches) : join(homedir(), ".cache"), "rollscope");
}
