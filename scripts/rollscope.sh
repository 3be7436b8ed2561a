#!/bin/sh
# Starts Rollscope with the system's Node if that is 20 or later, else with the one that came along.
set -eu
self=$(readlink -f -- "$0")
root=$(dirname -- "$(dirname -- "$self")")
# How messages call this program: by its name alone where that finds it.
called=$0
if [ "$(command -v rollscope || true)" = "$0" ]; then called=rollscope; fi
for node in "$(command -v node || true)" "$root/node/bin/node"; do
  [ -x "$node" ] || continue
  version=$("$node" --version 2>/dev/null) || continue
  major=${version#v}
  major=${major%%.*}
  [ "$major" -ge 20 ] 2>/dev/null || continue
  ROLLSCOPE_INVOKED_AS=$called exec "$node" "$root/dist/cli.mjs" "$@"
done
echo "rollscope: no Node 20 or later was found." >&2
echo "  next: install Node 20, 22 or 24, or take a payload that was packed with one (npm run package -- --with-node)" >&2
exit 1
