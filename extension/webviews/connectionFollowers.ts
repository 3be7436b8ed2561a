// The runs that the pages of one connection follow: asks the daemon, and hands on what it says.
import type { DaemonConnection } from "../daemon/connection.ts";
import { createRunFollowers, type RunFollowers } from "./runFollowers.ts";

/** Lasts as long as the connection. */
export function followOver(connection: DaemonConnection): RunFollowers {
  const followers = createRunFollowers({
    follow: async (folder, cursor) => void (await connection.request("run/follow", { folder, cursor })),
    unfollow: async (folder) => {
      // Nobody is told when the daemon is away: it forgot.
      if (connection.state.kind === "connected") await connection.request("run/unfollow", { folder });
    },
  });
  connection.on("run/delta", (delta) => followers.onDelta(delta));
  connection.onState(({ kind }) => {
    // Not while it connects: the first follow may be what it connects for.
    if (kind !== "connected" && kind !== "connecting") followers.onDisconnected();
  });
  return followers;
}
