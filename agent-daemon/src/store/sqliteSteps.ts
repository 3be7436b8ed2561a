// Plans and steps of the SQLite store. Their inserts reach the disk before they return: the insert of a step commits it.
import { RollscopeError } from "../../../protocol/errors.ts";
import {
  type PlanDocument,
  planDocumentSchema,
  type StepDocument,
  stepDocumentSchema,
} from "../../../protocol/step.ts";
import type { StepCollection, StepFilter, StepLikeCollection } from "./interface.ts";
import type { SqliteConnection } from "./sqliteConnection.ts";
import { type Clause, clausesOf } from "./sqliteFilter.ts";
import { notFound, openTable, type Table } from "./sqliteTable.ts";

interface StepLike {
  readonly id: string;
  readonly run: string;
  readonly step: number;
  readonly attempt: number;
  readonly voidedBy: number | null;
}

export function openPlans(connection: SqliteConnection): StepLikeCollection<PlanDocument> {
  const table = openTable<PlanDocument>(connection, {
    table: "plans",
    schema: planDocumentSchema,
    columns: { run: (plan) => plan.run, created: (plan) => plan.planned, ...stepColumns },
    orders: { step: "step" },
    durable: true,
  });
  return stepLike(connection, table);
}

export function openSteps(connection: SqliteConnection): StepCollection {
  const table = openTable<StepDocument>(connection, {
    table: "steps",
    schema: stepDocumentSchema,
    columns: { run: (step) => step.run, created: (step) => step.committed, ...stepColumns },
    orders: { step: "step" },
    durable: true,
  });
  return {
    ...stepLike(connection, table),
    addMetrics: async (id, metrics) =>
      connection.transaction(
        () => {
          const step = table.get([id]).get(id);
          if (step === undefined) throw notFound("steps", id);
          const taken = Object.keys(metrics).find((name) => Object.hasOwn(step.metrics, name));
          if (taken !== undefined) {
            throw new RollscopeError("STORE_DUPLICATE", `Step ${id} already has a metric ${taken}.`, {
              next: "A metric is written once; use another name for another measurement.",
              at: { id, metric: taken },
            });
          }
          table.rewrite({ ...step, metrics: { ...step.metrics, ...metrics } });
        },
        { durable: true },
      ),
  };
}

const stepColumns = {
  step: (document: StepLike) => document.step,
  attempt: (document: StepLike) => document.attempt,
  voided: (document: StepLike) => document.voidedBy !== null,
};

function stepLike<D extends StepLike>(connection: SqliteConnection, table: Table<D>): StepLikeCollection<D> {
  return {
    insert: async (documents) => table.insert(documents),
    get: async (ids) => table.get(ids),
    query: async (filter, page) => table.query(stepClauses(filter), page),
    count: async (filter) => table.count(stepClauses(filter)),
    voidAfter: async (run, step, attempt) =>
      connection.transaction(
        () => {
          const voided = table
            .all([...clausesOf({ run }), { sql: "voided = 0 AND step > ?", values: [step] }], "step")
            .map((document) => ({ ...document, voidedBy: attempt }));
          for (const document of voided) table.rewrite(document);
          return voided;
        },
        { durable: true },
      ),
  };
}

function stepClauses({ void: all, ...filter }: StepFilter): Clause[] {
  // Written out instead of bound, so that the index over what is not void can answer.
  return [...clausesOf({ ...filter }), ...(all === true ? [] : [{ sql: "voided = 0", values: [] }])];
}
