// State of the Trajectories view: which run or file, which step, filter, order, and the pages that were read. Reads by page; a change of
// any of them starts over, and answers that come too late are dropped; a run that goes on is read again in the background, while what is
// known stays.
import type * as vscode from "vscode";
import type { TrajectoryRow } from "../../protocol/trajectoryView.ts";
import type { DaemonConnection } from "../daemon/connection.ts";
import { asFault } from "../daemon/fault.ts";
import { isActive, type RunsModel } from "../runs/runsModel.ts";
import { setContextKey } from "../surface.ts";
import { createPacer } from "./pacer.ts";
import {
  describeList,
  isSettled,
  type TrajectoryFilter,
  type TrajectoryList,
  type TrajectoryOrder,
  trajectoryLines,
  withNews,
} from "./trajectoryLines.ts";
import type { TreeLine } from "./treeLine.ts";

export type TrajectoryPlace =
  | { readonly kind: "none" }
  | { readonly kind: "run"; readonly folder: string; readonly name: string }
  | { readonly kind: "file"; readonly path: string; readonly name: string };

const pageSize = 100;
/** What the daemon gives at once. */
const mostRead = 1000;
/** A run's list is not read more often than this. */
const followMilliseconds = 3000;
const keptAs = "rollscope.trajectories";

interface Kept {
  readonly place: TrajectoryPlace;
  readonly filter: TrajectoryFilter;
  readonly order: TrajectoryOrder;
  readonly descending: boolean;
}

export class TrajectoriesView {
  #connection: DaemonConnection;
  #view: vscode.TreeView<unknown>;
  #refresh: () => void;
  #place: TrajectoryPlace = { kind: "none" };
  #filter: TrajectoryFilter = {};
  #order: TrajectoryOrder = "created";
  #descending = true;
  #rows: readonly TrajectoryRow[] = [];
  #next: string | null = null;
  #total = 0;
  /** Made since the list was read. */
  #fresh = 0;
  #loaded: Promise<void> | null = null;
  #generation = 0;
  #memory: vscode.Memento;
  #runs: RunsModel;
  #pacer = createPacer(followMilliseconds, async () => {
    const { place } = this;
    const run = place.kind === "run" ? this.#runs.get(place.folder) : undefined;
    await this.#readAgain();
    if (run !== undefined && isActive(run)) this.#follow();
  });

  /** @param memory keeps what is shown over a reload of the window */
  constructor(
    connection: DaemonConnection,
    runs: RunsModel,
    view: vscode.TreeView<unknown>,
    refresh: () => void,
    memory: vscode.Memento,
  ) {
    this.#connection = connection;
    this.#view = view;
    this.#refresh = refresh;
    this.#memory = memory;
    this.#runs = runs;
    runs.onChange(() => this.#follow());
    view.onDidChangeVisibility(() => this.#follow());
    const kept = memory.get<Kept>(keptAs);
    if (kept === undefined) return;
    this.#place = kept.place;
    this.#filter = kept.filter;
    this.#order = kept.order;
    this.#descending = kept.descending;
    setContextKey("rollscope.runSelected", kept.place.kind !== "none");
  }

  get place(): TrajectoryPlace {
    return this.#place;
  }
  get filter(): TrajectoryFilter {
    return this.#filter;
  }
  get order(): TrajectoryOrder {
    return this.#order;
  }
  get descending(): boolean {
    return this.#descending;
  }

  show(place: TrajectoryPlace, filter: TrajectoryFilter = {}): void {
    this.#place = place;
    this.#filter = filter;
    setContextKey("rollscope.runSelected", place.kind !== "none");
    this.reload();
  }

  filterBy(filter: TrajectoryFilter): void {
    this.#filter = filter;
    this.reload();
  }

  orderBy(order: TrajectoryOrder, descending: boolean): void {
    this.#order = order;
    this.#descending = descending;
    this.reload();
  }

  reload(): void {
    const { place, filter, order, descending } = this;
    void this.#memory.update(keptAs, { place, filter, order, descending } satisfies Kept);
    this.#generation++;
    this.#loaded = null;
    this.#next = null;
    this.#fresh = 0;
    this.#refresh();
  }

  async more(): Promise<void> {
    if (this.#next === null) return;
    await this.#read(this.#generation, this.#next);
    this.#refresh();
  }

  async lines(): Promise<TreeLine[]> {
    const place = this.#place;
    if (place.kind === "none") {
      this.#view.description = "";
      this.#view.message = "";
      return [];
    }
    this.#view.description = describeList(place.name, this.#filter, this.#order);
    try {
      this.#loaded ??= this.#read(this.#generation, null);
      await this.#loaded;
    } catch (error) {
      this.#loaded = null;
      const { message, next } = asFault(error);
      this.#view.message = `${message} ${next}`;
      return [];
    }
    this.#view.message = this.#message();
    const list: TrajectoryList = { rows: this.#rows, total: this.#total, more: this.#next !== null };
    return trajectoryLines(place.kind === "run" ? place.folder : place.path, list, this.#order);
  }

  #message(): string {
    if (this.#rows.length > 0)
      return this.#fresh === 0 ? "" : `${this.#fresh} new since this list was read. Refresh shows them.`;
    return Object.keys(this.#filter).length > 0
      ? "No trajectory fits the filter. Change it with Filter Trajectories."
      : "No trajectories yet. They appear when the first rollouts are over.";
  }

  async #read(generation: number, after: string | null): Promise<void> {
    const place = this.#place;
    if (place.kind === "none") return;
    if (place.kind === "file") {
      const { rows } = await this.#connection.request("file/open", { path: place.path });
      if (generation !== this.#generation) return;
      this.#rows = [...rows];
      this.#total = rows.length;
      this.#next = null;
      return;
    }
    const { rows, next, total } = await this.#connection.request("trajectories/list", {
      ...this.#request(place.folder),
      limit: pageSize,
      after,
    });
    if (generation !== this.#generation) return;
    this.#rows = after === null ? rows : [...this.#rows, ...rows];
    this.#next = next;
    this.#total = total;
  }

  /** While runs change, and while the one that is shown is active: a step may take minutes, in which rollouts begin and end. */
  #follow(): void {
    if (this.#view.visible && this.#place.kind === "run") this.#pacer.ask();
  }

  /**
   * A short list grows by itself. Of a full one each line stays where it is, so that none moves from under the pointer: it tells how its
   * rollout ended, and the list says what is new.
   */
  async #readAgain(): Promise<void> {
    const place = this.#place;
    if (place.kind !== "run") return;
    if (this.#loaded === null) {
      // The last reading failed: a run that just begins has no records yet.
      this.#refresh();
      return;
    }
    const generation = this.#generation;
    if (this.#rows.length < pageSize) {
      await this.#read(generation, null);
      if (generation !== this.#generation) return;
      this.#view.message = this.#message();
      this.#refresh();
      return;
    }
    const limit = this.#rows.every(isSettled) ? 1 : Math.min(mostRead, this.#rows.length + pageSize);
    const { rows, total } = await this.#connection.request("trajectories/list", {
      ...this.#request(place.folder),
      limit,
    });
    if (generation !== this.#generation) return;
    const news = withNews(this.#rows, rows);
    this.#fresh = Math.max(0, total - this.#total);
    this.#view.message = this.#message();
    if (news === this.#rows) return;
    this.#rows = news;
    this.#refresh();
  }

  #request(folder: string) {
    return { folder, filter: this.#filter, order: this.#order, descending: this.#descending };
  }

  dispose(): void {
    this.#pacer.dispose();
  }
}
