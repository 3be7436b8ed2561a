import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { daemonHome, makePrivateFolder } from "../../../agent-daemon/src/daemon/server/daemonHome.ts";
import { readLock, takeLock } from "../../../agent-daemon/src/daemon/server/daemonLock.ts";
import { startOfProcess } from "../../../agent-daemon/src/daemon/server/processIdentity.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const given = { socket: "/nowhere.sock", version: "1", since: 1 };

async function sleeping() {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await new Promise((resolve) => child.once("spawn", resolve));
  return child;
}

test("P30: a lock that names a living process with another start is set aside, and that process is not touched", async () => {
  const file = join(await temporaryFolder(), "daemon.lock");
  const sleeper = await sleeping();
  writeFileSync(file, JSON.stringify({ pid: sleeper.pid, start: "an-earlier-boot:12", ...given }));
  expect(readLock(file)).toBeNull();
  const lock = takeLock(file, given);
  expect(readLock(file)).toMatchObject({ pid: process.pid });
  expect([sleeper.exitCode, sleeper.signalCode]).toEqual([null, null]);
  lock.dispose();
  expect(existsSync(file)).toBe(false);
});

test.each(["", "{", '{"pid": 12', "null", '{"pid":1}', "\0\0\0"])(
  "P30: a lock that says %j does not stand in the way",
  async (text) => {
    const folder = await temporaryFolder();
    const file = join(folder, "daemon.lock");
    writeFileSync(file, text);
    takeLock(file, given).dispose();
    expect(readdirSync(folder)).toEqual([]);
  },
);

test("a lock of a process that has ended is set aside", async () => {
  const file = join(await temporaryFolder(), "daemon.lock");
  const sleeper = await sleeping();
  const start = startOfProcess(sleeper.pid as number);
  writeFileSync(file, JSON.stringify({ pid: sleeper.pid, start, ...given }));
  expect(readLock(file)).toMatchObject({ pid: sleeper.pid });
  expect(() => takeLock(file, given)).toThrow(expect.objectContaining({ code: "DAEMON_RUNNING" }));
  sleeper.kill("SIGKILL");
  await new Promise((resolve) => sleeper.once("exit", resolve));
  takeLock(file, given).dispose();
});

test("P30: a second owner is refused and told where the first one listens; a taken lock is noticed", async () => {
  const file = join(await temporaryFolder(), "daemon.lock");
  const lock = takeLock(file, given);
  expect(() => takeLock(file, given)).toThrow(
    expect.objectContaining({ code: "DAEMON_RUNNING", message: expect.stringContaining("/nowhere.sock") }),
  );
  expect(lock.isMine()).toBe(true);
  writeFileSync(file, readFileSync(file, "utf8").replace('"since":1', '"since":2'));
  expect(lock.isMine()).toBe(false);
  lock.dispose();
  expect(existsSync(file)).toBe(true);
});

test("the daemon's folder is private; a link or somebody's open folder is not taken as it is", async () => {
  const folder = await temporaryFolder();
  const open = join(folder, "open");
  mkdirSync(open, { mode: 0o777 });
  chmodSync(open, 0o777);
  makePrivateFolder(open);
  expect(statSync(open).mode & 0o777).toBe(0o700);
  symlinkSync(open, join(folder, "link"));
  expect(() => makePrivateFolder(join(folder, "link"))).toThrow(
    expect.objectContaining({ code: "DAEMON_HOME_UNUSABLE" }),
  );
});

test("a socket's path always fits, however long the home's is", () => {
  for (const length of [10, 60, 90, 200, 4000]) {
    const home = daemonHome({ ROLLSCOPE_HOME: `/${"h".repeat(length)}` });
    expect(Buffer.byteLength(home.socket)).toBeLessThanOrEqual(103);
    expect(home.socket).toBe(daemonHome({ ROLLSCOPE_HOME: `/${"h".repeat(length)}` }).socket);
  }
});
