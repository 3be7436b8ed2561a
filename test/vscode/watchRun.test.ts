// A run watched from the palette to its tokens, on the embedded engine with a tiny model: charts move, a point leads to its trajectories,
// a token shows what is stored, in every theme.
import { afterAll, beforeAll, expect, test } from "vitest";
import { storedNumber } from "../../webview/inspector/tokenText.ts";
import { type ProductWindow, recordTitle, startProduct } from "../support/productWindow.ts";
import { tinyRecipeFiles } from "../support/tinyRecipe.ts";
import { type ThemeName, themes } from "../support/vscode.ts";

const steps = 20_000;
let product: ProductWindow;

beforeAll(async () => {
  product = await startProduct({
    files: tinyRecipeFiles("sums", { steps }),
    viewport: { width: 1600, height: 1000 },
    settings: { "workbench.colorTheme": "Default Dark Modern" },
  });
});
afterAll(() => product?.dispose());

test("Run Recipe starts a run on the embedded engine, and its dashboard's charts move", async () => {
  const { vscode } = product;
  await product.openViews();
  await product.runRecipe("sums");
  const loss = (await product.dashboard("sums")).getByRole("slider", { name: "Loss. Step" });
  await loss.locator("canvas").waitFor();
  const lastStep = async () => Number(await loss.getAttribute("aria-valuemax"));
  await expect.poll(lastStep).toBeGreaterThan(3);
  const [before, picture] = [await lastStep(), await loss.screenshot()];
  await expect.poll(lastStep).toBeGreaterThan(before);
  await expect.poll(async () => picture.equals(await loss.screenshot())).toBe(false);
  expect(await product.stepInView(steps)).toBeGreaterThan(0);
  await vscode.statusItem(/sums \d+\/20000/).waitFor();
  await expect.poll(lastStep).toBeGreaterThan(12);
  await vscode.screenshot("run");
});

test("a click on a point shows the trajectories of that step, on the page and in the view", async () => {
  const { vscode } = product;
  const dashboard = await product.dashboard("sums");
  const plot = dashboard.getByRole("slider", { name: "Loss. Step" });
  const box = (await plot.boundingBox())!;
  await plot.click({ position: { x: box.width / 2, y: box.height / 2 } });
  const heading = dashboard.locator(".step-panel h2");
  await heading.waitFor();
  const step = Number(/\d+/.exec((await heading.textContent())!)?.[0]);
  expect(step).toBeGreaterThan(0);
  await dashboard.getByText("8 trajectories").waitFor();
  await dashboard.getByText("Show in the Trajectories view").click();
  await product.header("Trajectories").getByText(`step ${step}`).waitFor();
  await vscode.screenshot("point");

  const inStep = JSON.parse(await inspect(product, "--step", String(step))) as { records: unknown[] };
  expect(inStep.records).toHaveLength(8);
});

test("a trajectory of the step opens beside, and a token shows the numbers that are stored", async () => {
  const { vscode } = product;
  await (await product.dashboard("sums")).locator(".step-table .virtual-row").first().click();
  const inspector = await product.inspector();
  await inspector.locator(".turn-list").getByText("assistant").click();
  // The strip moves while its colours come; a person points at where the token is now.
  const shown = async () => {
    await inspector.locator('[data-cell="2"]').hover();
    const numbers = inspector.locator(".number-list [data-column]");
    const pairs = await numbers.evaluateAll((cells) =>
      cells.map((cell) => [cell.getAttribute("data-column"), cell.textContent]),
    );
    return Object.fromEntries(pairs) as Readonly<Record<string, string>>;
  };
  const record = (await vscode.page.locator(".tabs-container .tab", { hasText: /^t\d+-/ }).textContent())!.trim();
  const { calls } = JSON.parse(await inspect(product, record)) as { calls: { tokens: StoredToken[] }[] };
  const stored = calls[0]!.tokens[2]!;
  const expected = {
    ...{ id: String(stored.id), version: String(stored.version), mask: stored.trained ? "1" : "0" },
    ...{ logprob: short(stored.rollout), old: short(stored.old), new: short(stored.new) },
    ...{ reference: short(stored.reference), entropy: short(stored.entropy), advantage: short(stored.advantage) },
  };
  await expect.poll(shown).toMatchObject(expected);
  expect(await inspector.locator(".numbers-title").textContent()).toContain("Token 2");
  expect(Number((await shown())["ratio"])).toBeCloseTo(stored.ratio, 5);
  await vscode.screenshot("token");
});

test("search finds a text in the trajectory and shows where", async () => {
  const inspector = await product.inspector();
  await inspector.locator(".turn-pane").click();
  await product.vscode.page.keyboard.press("/");
  await product.vscode.page.keyboard.type("+ 2");
  await product.vscode.page.keyboard.press("Enter");
  await inspector.locator(".hits mark").first().waitFor();
  await inspector.locator(".turn-pane mark").first().waitFor();
  expect(await inspector.locator(".turn-pane mark").first().textContent()).toBe("+ 2");
  await product.vscode.screenshot("search");
  await product.vscode.page.keyboard.press("/");
  await product.vscode.page.keyboard.press("Escape");
  await inspector.locator(".turn-list").getByText("assistant").click();
});

test("the trajectories of the group stand side by side, from the token where they part", async () => {
  const inspector = await product.inspector();
  await inspector.getByRole("button", { name: "Siblings", exact: true }).click();
  await expect.poll(() => inspector.locator(".sibling").count()).toBe(4);
  const parted = inspector.locator(".sibling", { hasText: /parts at token \d/ });
  await expect.poll(() => parted.count()).toBe(4);
  await parted.filter({ hasText: "this one" }).waitFor();
  // Their texts come after their numbers.
  await expect.poll(() => parted.filter({ hasText: "…" }).count()).toBe(0);
  await product.vscode.screenshot("siblings");
  await inspector.getByRole("button", { name: "Chat", exact: true }).click();
  await inspector.locator('[data-cell="2"]').waitFor();
});

test("dashboard and inspector take the colours of all four themes", async () => {
  const { vscode } = product;
  const lightness = async (title: RegExp) => {
    const frame = await vscode.webviewFrame(title);
    const colour = (await frame.evaluate("getComputedStyle(document.body).backgroundColor")) as string;
    const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
    return (red + green + blue) / 3;
  };
  for (const theme of Object.keys(themes) as ThemeName[]) {
    await vscode.useTheme(theme);
    for (const page of [/^sums/, recordTitle]) {
      const light = theme === "light" || theme === "high-contrast-light";
      await (await vscode.webview(page)).locator(`body[data-vscode-theme-kind="${kinds[theme]}"]`).waitFor();
      if (light) await expect.poll(() => lightness(page)).toBeGreaterThan(240);
      else await expect.poll(() => lightness(page)).toBeLessThan(40);
    }
    await vscode.screenshot(`theme-${theme}`);
  }
});

const kinds: Readonly<Record<ThemeName, string>> = {
  light: "vscode-light",
  dark: "vscode-dark",
  "high-contrast": "vscode-high-contrast",
  "high-contrast-light": "vscode-high-contrast-light",
};

/** As `rollscope inspect --json` prints it. */
interface StoredToken {
  readonly id: number;
  readonly version: number;
  readonly trained: boolean;
  readonly rollout: number;
  readonly old: number;
  readonly new: number;
  readonly reference: number;
  readonly entropy: number;
  readonly ratio: number;
  readonly advantage: number;
}

const short = (value: number) => storedNumber(Math.fround(value), false);

function inspect({ folder, rollscope }: ProductWindow, ...args: string[]): Promise<string> {
  return rollscope("inspect", "latest", ...args, "--json", "--output-dir", `${folder}/sums/runs`);
}
