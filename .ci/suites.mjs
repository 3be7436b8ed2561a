// The suites that must pass before a change lands, with the minutes each may take. A suite over its budget has failed.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const suites = [
  { name: "set-up", command: ["node", "scripts/setup.mjs"], minutes: 15 },
  { name: "check", command: ["npm", "run", "--silent", "check"], minutes: 3 },
  { name: "npm test", command: ["npm", "test", "--silent"], minutes: 10 },
  // Apart from the suite that it is for, so that a fresh machine does not take its minutes.
  { name: "set-up editor", command: ["node", "scripts/setup-vscode.mjs"], minutes: 10 },
  { name: "test:vscode", command: ["npm", "run", "--silent", "test:vscode"], minutes: 10 },
  { name: "test:browser", command: ["npm", "run", "--silent", "test:browser"], minutes: 5 },
];
const totalMinutes = 75;

const reports = mkdtempSync(join(tmpdir(), "rollscope-ci-"));
const rows = [];
let passed = 0;
let failed = 0;
const started = Date.now();

for (const suite of suites) {
  console.log(`\n=== ${suite.name} (budget ${suite.minutes} min)`);
  const begun = Date.now();
  const reportFile = join(reports, `${suite.name.replaceAll(/\W/g, "-")}.json`);
  const outcome = await run(suite, reportFile);
  const minutes = (Date.now() - begun) / 60_000;
  const counts = readCounts(reportFile);
  passed += counts.passed;
  failed += counts.failed;
  const within = minutes <= suite.minutes;
  // A suite without a report of its own counts as one test; a crash or an overrun is a failure even if every test passed.
  const ok = outcome === "ok" && within;
  if (!counts.found) ok ? passed++ : failed++;
  else if (!ok && counts.failed === 0) failed++;
  rows.push(
    `${ok ? "ok    " : "FAILED"} ${suite.name.padEnd(13)} ${minutes.toFixed(1)} of ${suite.minutes} min${within ? "" : "  over budget"}${outcome === "ok" ? "" : `  ${outcome}`}`,
  );
  if (suite.name === "set-up" && !ok) break;
}

const minutes = (Date.now() - started) / 60_000;
if (minutes > totalMinutes) {
  failed++;
  rows.push(`FAILED everything took ${minutes.toFixed(1)} of ${totalMinutes} min`);
}
rmSync(reports, { recursive: true, force: true });
console.log(`\n${rows.join("\n")}\ntotal ${minutes.toFixed(1)} of ${totalMinutes} min`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

/** "ok", or what ended the suite. The whole process group is ended when the budget is spent. */
function run(suite, reportFile) {
  return new Promise((resolve) => {
    const [command, ...args] = suite.command;
    const child = spawn(command, args, {
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
      env: { ...process.env, CI: "true", ROLLSCOPE_TEST_REPORT: reportFile },
    });
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), suite.minutes * 60_000);
    child.on("error", (cause) => resolve(`cannot start: ${cause.message}`));
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      resolve(code === 0 ? "ok" : (signal ?? `exit ${code}`));
    });
  });
}

function readCounts(reportFile) {
  const name = reportFile.split("/").at(-1);
  if (!readdirSync(reports).includes(name)) return { found: false, passed: 0, failed: 0 };
  const report = JSON.parse(readFileSync(reportFile, "utf8"));
  return {
    found: true,
    passed: report.numPassedTests,
    failed: report.numFailedTests + (report.numFailedTestSuites > 0 && report.numFailedTests === 0 ? 1 : 0),
  };
}
