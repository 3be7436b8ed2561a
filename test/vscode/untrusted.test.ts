// A folder that is not trusted, and at first no payload: one can look, nothing runs, and every message says what to do.
import { afterAll, beforeAll, expect, test } from "vitest";
import { installPayload } from "../support/installedProduct.ts";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";
import { tinyRecipeFiles } from "../support/tinyRecipe.ts";

let product: ProductWindow;

beforeAll(async () => {
  product = await startProduct({ files: tinyRecipeFiles("sums", { steps: 3 }), payload: false, trust: "asked" });
  await product.vscode.page.getByRole("button", { name: /No, I don't trust/ }).click();
});
afterAll(() => product?.dispose());

test("without a payload the check says where it looked, and offers to choose one", async () => {
  const { vscode } = product;
  await product.openViews();
  await vscode.page.getByRole("button", { name: "Check Environment" }).first().waitFor();
  await vscode.runCommand("Rollscope: Check Environment");
  await vscode.page.getByText("PAYLOAD_NOT_FOUND").first().waitFor();
  const notification = vscode.notification("does not work yet");
  await notification.getByRole("button", { name: "Choose Payload" }).hover();
  await vscode.screenshot("no-payload");
  await notification.hover();
  await notification.locator(".codicon-notifications-clear").click();
});

test("a payload that is installed meanwhile is found by the next command, and the folder's recipes can be looked at", async () => {
  const { vscode } = product;
  installPayload(vscode.home);
  await vscode.runCommand("Rollscope: Check Environment");
  await product.line("This machine").waitFor();
  await product.line("sums").click();
  await vscode.tab("recipe.yaml").waitFor();
});

test("running a recipe of the folder is refused, with the way to trust it", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Run Recipe");
  const notification = vscode.notification("WORKSPACE_UNTRUSTED");
  await notification.getByRole("button", { name: "Manage Workspace Trust" }).hover();
  await vscode.screenshot("untrusted");
  await notification.getByRole("button", { name: "Manage Workspace Trust" }).click();
  await vscode.page.getByText("You are in Restricted Mode").first().waitFor();
  expect(vscode.home.processes().filter(({ command }) => command.includes("run"))).toEqual([]);
});
