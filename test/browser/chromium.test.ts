// The browser that measures the pages: it starts, runs scripts and reaches nothing but this machine.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launchChromium } from "../support/chromium.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await launchChromium();
});

afterAll(() => browser.close());

test("a page of a local server is loaded and run", async () => {
  const server = createServer((_, reply) => {
    reply.setHeader("content-type", "text/html");
    reply.end(`<p></p><script>document.querySelector("p").textContent = 6 * 7;</script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(await page.locator("p").textContent()).toBe("42");
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("names of other machines do not resolve", async () => {
  const page = await browser.newPage();
  await expect(page.goto("http://example.com/")).rejects.toThrow("ERR_NAME_NOT_RESOLVED");
});
