import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findNode } from "../../../extension/daemon/nodeProgram.ts";
import { findPayload, type Payload, type PayloadPlaces } from "../../../extension/daemon/payload.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "rollscope-payload-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function place(...parts: string[]): string {
  const file = join(root, ...parts);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "#!/bin/sh\n");
  chmodSync(file, 0o755);
  return file;
}

const places = (more: Partial<PayloadPlaces> = {}): PayloadPlaces => ({
  setting: "",
  version: "1.2.3",
  home: join(root, "home"),
  rollscopeHome: join(root, "home", ".rollscope"),
  path: [join(root, "bin"), "", join(root, "missing")].join(":"),
  extensionFolder: join(root, "extension"),
  ...more,
});

describe("where the payload is looked for", () => {
  it("takes the setting, then the installed version, then PATH, then the extension's own folder", async () => {
    const inExtension = place("extension", "payload", "dist", "cli.mjs");
    expect(await findPayload(places())).toMatchObject({ origin: "extension", file: inExtension });
    const onPath = place("bin", "rollscope");
    expect(await findPayload(places())).toEqual({ kind: "command", origin: "path", file: onPath });
    const installed = place("home", ".rollscope", "payload", "1.2.3", "dist", "cli.mjs");
    expect(await findPayload(places())).toMatchObject({ kind: "script", origin: "home", file: installed });
    const chosen = place("chosen", "cli.mjs");
    expect(await findPayload(places({ setting: join(root, "chosen") }))).toMatchObject({
      origin: "setting",
      file: chosen,
    });
  });

  it("follows a link on PATH to the program that Node runs", async () => {
    const file = place("somewhere", "dist", "cli.mjs");
    mkdirSync(join(root, "bin"));
    symlinkSync(file, join(root, "bin", "rollscope"));
    expect(await findPayload(places())).toEqual({ kind: "script", origin: "path", file, node: null });
  });

  it("reads ~ in the setting, and finds the Node that a payload brings", async () => {
    place("home", "mine", "dist", "cli.mjs");
    const node = place("home", "mine", "node", "bin", "node");
    expect(await findPayload(places({ setting: "~/mine" }))).toMatchObject({ origin: "setting", node });
  });

  it("says so when the chosen place has none, instead of taking another", async () => {
    place("home", ".rollscope", "payload", "1.2.3", "dist", "cli.mjs");
    await expect(findPayload(places({ setting: join(root, "nothing") }))).rejects.toMatchObject({
      code: "PAYLOAD_INVALID",
    });
  });

  it("names every place when there is none", async () => {
    const refused = findPayload(places());
    await expect(refused).rejects.toMatchObject({
      code: "PAYLOAD_NOT_FOUND",
      next: expect.stringContaining("Check Environment"),
    });
    await expect(refused).rejects.toThrow(join("payload", "1.2.3"));
  });
});

describe("which Node runs it", () => {
  const payload: Payload = { kind: "script", origin: "home", file: "/p/cli.mjs", node: "/p/node" };
  const versions = (known: Record<string, string>) => async (file: string) => known[file] ?? null;

  it("takes the system's when it is new enough, else the payload's, else the editor's own", async () => {
    const all = { node: "22.1.0", "/p/node": "20.1.0", "/editor": "20.18.0" };
    expect(await findNode(payload, "/editor", versions(all))).toMatchObject({ file: "node", origin: "system" });
    expect(await findNode(payload, "/editor", versions({ ...all, node: "18.20.0" }))).toMatchObject({
      origin: "payload",
    });
    expect(await findNode(payload, "/editor", versions({ "/editor": "20.18.0" }))).toMatchObject({
      origin: "editor",
      environment: { ELECTRON_RUN_AS_NODE: "1" },
    });
  });

  it("names what it tried when none is new enough", async () => {
    await expect(findNode(payload, "/editor", versions({ node: "18.20.0" }))).rejects.toMatchObject({
      code: "NODE_NOT_FOUND",
      message: expect.stringContaining("node is 18.20.0"),
    });
  });
});
