// The import rules of docs/ARCHITECTURE.md, as errors: who may import whom, and that nothing imports in a circle.
const layers = [
  ["algorithms"],
  ["store"],
  ["engines"],
  ["capture"],
  ["sampling", "training"],
  ["recipes"],
  ["launch", "telemetry"],
  ["runs"],
  ["daemon"],
  ["cli"],
];

const layerRules = layers.flatMap((names, index) => {
  const later = layers.slice(index + 1).flat();
  if (later.length === 0) return [];
  return [
    {
      name: `${names.join("-and-")}-imports-no-later-layer`,
      severity: "error",
      from: { path: `^agent-daemon/src/(${names.join("|")})/` },
      to: { path: `^agent-daemon/src/(${later.join("|")})/` },
    },
  ];
});

export default {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "protocol-imports-zod-only",
      severity: "error",
      from: { path: "^protocol/" },
      to: { pathNot: "^(protocol/|node_modules/zod)" },
    },
    {
      name: "algorithms-are-pure",
      severity: "error",
      from: { path: "^agent-daemon/src/algorithms/" },
      to: { pathNot: "^(protocol/|agent-daemon/src/algorithms/)" },
    },
    {
      name: "recipes-import-the-recipe-api-only",
      severity: "error",
      from: { path: "^recipes/" },
      to: { pathNot: "^(agent-daemon/src/recipes/api\\.ts|recipes/)", path: "^(agent-daemon|protocol|native|test)/" },
    },
    {
      name: "native-addon-only-in-embedded-engine",
      severity: "error",
      from: { path: "^agent-daemon/", pathNot: "^agent-daemon/src/engines/embedded" },
      to: { path: "^native/" },
    },
    {
      name: "pages-import-protocol-and-algorithms-only",
      severity: "error",
      from: { path: "^webview/" },
      to: { path: "^(agent-daemon|native|extension|recipes|scripts)/", pathNot: "^agent-daemon/src/algorithms/" },
    },
    {
      name: "pages-do-not-import-each-other",
      severity: "error",
      from: { path: "^webview/(dashboard|inspector)/" },
      to: { path: "^webview/(dashboard|inspector)/", pathNot: "^webview/$1/" },
    },
    {
      name: "archived-toolkit-in-one-file",
      severity: "error",
      from: { path: "^webview/", pathNot: "^webview/shared/controls\\.tsx$" },
      to: { path: "@vscode/webview-ui-toolkit" },
    },
    {
      name: "extension-imports-protocol-only",
      severity: "error",
      from: { path: "^extension/" },
      to: { path: "^(agent-daemon|native|webview|recipes|scripts)/" },
    },
    {
      name: "vscode-in-extension-only",
      severity: "error",
      from: { pathNot: "^(extension|test)/" },
      to: { path: "^(vscode|node_modules/@types/vscode)" },
    },
    { name: "product-imports-no-tests", severity: "error", from: { pathNot: "^test/" }, to: { path: "^test/" } },
    ...layerRules,
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
