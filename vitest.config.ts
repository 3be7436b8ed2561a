// The test projects: one per folder of test/, so that each suite can be run and budgeted by itself.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const recipeApi = fileURLToPath(new URL("./agent-daemon/src/recipes/api.ts", import.meta.url));

const report = process.env["ROLLSCOPE_TEST_REPORT"];

function project(
  name: string,
  timeoutSeconds: number,
  setupFiles: readonly string[] = [],
  globalSetup: readonly string[] = [],
) {
  return {
    resolve: { alias: { "rollscope/recipe": recipeApi } },
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      setupFiles: [...setupFiles],
      globalSetup: [...globalSetup],
      // A browser beside other work takes its time; what never comes still fails well within a test's own limit.
      expect: { poll: { timeout: 10_000 } },
      environment: "node",
      testTimeout: timeoutSeconds * 1000,
      hookTimeout: timeoutSeconds * 1000,
      pool: "forks" as const,
      // Several test processes share the cores: threads that spin while they wait would take them from the others.
      env: { OMP_WAIT_POLICY: "passive" },
    },
  };
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    // .ci/run counts tests from this report.
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [
      project("unit", 30),
      project("oracles", 60),
      project("integration", 180),
      project("full", 3600),
      project("vscode", 120, ["test/support/editorHooks.ts"]),
      project("browser", 60, [], ["test/support/builtPages.ts"]),
    ],
  },
});
