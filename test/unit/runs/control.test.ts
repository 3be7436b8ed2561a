import { statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { askCoordinator } from "../../../agent-daemon/src/runs/controlClient.ts";
import { startControlServer } from "../../../agent-daemon/src/runs/controlServer.ts";
import { createRunFolder } from "../../../agent-daemon/src/runs/runFolder.ts";
import { createStopSwitch } from "../../../agent-daemon/src/runs/stopSwitch.ts";
import type { ControlState } from "../../../protocol/control.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

async function running() {
  const folder = createRunFolder(await temporaryFolder(), "toy", new Date());
  const stops = createStopSwitch();
  const state = (): ControlState => ({
    run: folder.run,
    pid: process.pid,
    attempt: 1,
    phase: "sampling",
    step: 3,
    steps: 10,
    pausing: stops.pausing,
    stopping: stops.stopping,
  });
  const server = await startControlServer(folder.control, 1, (command) => {
    if (command === "stop") stops.stop();
    if (command === "stop-now") stops.stopNow();
    if (command === "pause") stops.pause();
    if (command === "resume") stops.resume();
    return state();
  });
  return { folder, stops, server };
}

describe("the control of a run", () => {
  test("carries commands from another process and answers with the state after them", async () => {
    const { folder, server } = await running();
    expect(await askCoordinator(folder, "status")).toMatchObject({ step: 3, pausing: false });
    expect(await askCoordinator(folder, "pause")).toMatchObject({ pausing: true });
    expect(await askCoordinator(folder, "resume")).toMatchObject({ pausing: false });
    expect(await askCoordinator(folder, "stop")).toMatchObject({ stopping: true });
    await server.dispose();
  });

  test("is for the owner of the run alone", async () => {
    const { folder, server, stops } = await running();
    expect(statSync(folder.control).mode & 0o777).toBe(0o600);
    writeFileSync(folder.control, JSON.stringify({ ...server.address, token: "0".repeat(64) }));
    expect(await askCoordinator(folder, "stop")).toBeNull();
    expect(stops.stopping).toBe(false);
    await server.dispose();
  });

  test("tells that nobody answers once the coordinator is gone, also when its file is still there or torn", async () => {
    const { folder, server } = await running();
    const { address } = server;
    await server.dispose();
    expect(await askCoordinator(folder, "status")).toBeNull();
    writeFileSync(folder.control, JSON.stringify(address));
    expect(await askCoordinator(folder, "status")).toBeNull();
    writeFileSync(folder.control, JSON.stringify(address).slice(0, 20));
    expect(await askCoordinator(folder, "status")).toBeNull();
  });
});

describe("the stop switch", () => {
  test("stops at the next safe point, and at once when asked again", async () => {
    const stops = createStopSwitch();
    expect(await stops.safePoint(() => {})).toBe(true);
    stops.stop();
    expect(stops.now.aborted).toBe(false);
    expect(await stops.safePoint(() => {})).toBe(false);
    stops.stop();
    expect(stops.now.reason).toMatchObject({ code: "RUN_STOPPED" });
  });

  test("waits at a safe point while paused, and a stop ends the wait", async () => {
    const stops = createStopSwitch();
    stops.pause();
    let paused = 0;
    const first = stops.safePoint(() => paused++);
    stops.resume();
    expect(await first).toBe(true);
    stops.pause();
    const second = stops.safePoint(() => paused++);
    stops.stop();
    expect(await second).toBe(false);
    expect(paused).toBe(2);
  });
});
