// Pages for a browser on this machine: the server is opened with the first one.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { type PageServer, pagesFolder, startPageServer } from "../pages/pageServer.ts";
import type { CreateMethods } from "./methodTypes.ts";

export const pageServerMethods: CreateMethods = ({ clock, log, call }) => {
  let server: Promise<PageServer> | null = null;
  return {
    handlers: {
      "page/open": async ({ state }) => {
        const folder = pagesFolder();
        if (folder === null) {
          throw new RollscopeError("PAGES_MISSING", "The pages for a browser are not built.", {
            next: "Run `npm run build`, or install a payload.",
          });
        }
        server ??= startPageServer(folder, clock, { call, log });
        return { url: (await server).urlOf(state) };
      },
    },
    dispose: async () => {
      await (await server)?.dispose();
    },
  };
};
