// Several pages follow runs over one connection, on which a run can be followed once. Gives each page exactly what it asked for: a
// snapshot first or the events after its cursor, none twice, none missing. Pure: what goes to the daemon is handed out.
import type { RunDelta } from "../../protocol/runView.ts";

export interface FollowUpstream {
  readonly follow: (folder: string, cursor: number | null) => Promise<void>;
  readonly unfollow: (folder: string) => Promise<void>;
}

export interface Page {
  readonly deliver: (delta: RunDelta) => void;
}

/** Cursor of a page in a run; null until it got the snapshot it waits for. */
type Cursors = Map<Page, number | null>;

export interface RunFollowers {
  readonly follow: (page: Page, folder: string, cursor: number | null) => Promise<void>;
  readonly unfollow: (page: Page, folder: string) => Promise<void>;
  readonly leave: (page: Page) => void;
  readonly onDelta: (delta: RunDelta) => void;
  /** The daemon knows nothing of earlier follows any more; pages ask again by themselves. */
  readonly onDisconnected: () => void;
}

export function createRunFollowers(upstream: FollowUpstream): RunFollowers {
  const runs = new Map<string, Cursors>();

  const unfollow = async (page: Page, folder: string): Promise<void> => {
    const cursors = runs.get(folder);
    if (cursors === undefined || !cursors.delete(page) || cursors.size > 0) return;
    runs.delete(folder);
    await upstream.unfollow(folder);
  };

  const onEvents = (delta: RunDelta & { kind: "events" }, cursors: Cursors) => {
    for (const [page, cursor] of cursors) {
      // Events before a page's snapshot are in that snapshot. What a page has already may come with a new status, and no event.
      if (cursor === null || delta.cursor < cursor) continue;
      const events = delta.events.filter(({ n }) => n > cursor);
      cursors.set(page, delta.cursor);
      page.deliver({ ...delta, events });
    }
  };

  return {
    follow: async (page, folder, cursor) => {
      const cursors = runs.get(folder) ?? new Map<Page, number | null>();
      runs.set(folder, cursors);
      cursors.set(page, cursor);
      // The daemon goes on from the page that is furthest behind; the others are spared what they have.
      const known = [...cursors.values()];
      const least = known.includes(null) ? null : Math.min(...known.map(Number));
      try {
        await upstream.follow(folder, least);
      } catch (error) {
        if (cursors.get(page) === cursor) cursors.delete(page);
        if (cursors.size === 0 && runs.get(folder) === cursors) runs.delete(folder);
        throw error;
      }
    },
    unfollow,
    leave: (page) => {
      for (const folder of [...runs.keys()]) void unfollow(page, folder).catch(() => {});
    },
    onDelta: (delta) => {
      const cursors = runs.get(delta.folder);
      if (cursors === undefined) return;
      if (delta.kind === "events") {
        onEvents(delta, cursors);
        return;
      }
      if (delta.kind === "snapshot") {
        for (const [page, cursor] of cursors) {
          // A snapshot that another page asked for tells a page nothing new when its cursor is not behind it.
          if (cursor !== null && cursor >= delta.snapshot.cursor) continue;
          cursors.set(page, delta.snapshot.cursor);
          page.deliver(delta);
        }
        return;
      }
      for (const page of cursors.keys()) page.deliver(delta);
      runs.delete(delta.folder);
    },
    onDisconnected: () => runs.clear(),
  };
}
