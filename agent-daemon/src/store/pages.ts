// All documents of a query, page by page, so that a long answer never has to be in memory at once.
import type { Page, PageRequest } from "./interface.ts";

interface Queried<D, Filter, Order extends string> {
  query(filter: Filter, page?: PageRequest<Order>): Promise<Page<D>>;
}

export async function* everyDocument<D, Filter, Order extends string>(
  collection: Queried<D, Filter, Order>,
  filter: Filter,
  page: Omit<PageRequest<Order>, "after"> = {},
): AsyncIterable<D> {
  let after: string | null | undefined;
  do {
    const answer: Page<D> = await collection.query(filter, { limit: 500, ...page, ...(after ? { after } : {}) });
    yield* answer.items;
    after = answer.next;
  } while (after !== null);
}

export async function allDocuments<D, Filter, Order extends string>(
  collection: Queried<D, Filter, Order>,
  filter: Filter,
  page?: Omit<PageRequest<Order>, "after">,
): Promise<D[]> {
  const documents: D[] = [];
  for await (const document of everyDocument(collection, filter, page)) documents.push(document);
  return documents;
}
