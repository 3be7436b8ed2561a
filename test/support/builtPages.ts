// Builds the pages before the tests of them, so that none ever looks at an older one.
export async function setup(): Promise<void> {
  const script: string = new URL("../../scripts/buildPages.mjs", import.meta.url).href;
  const { bundlePages } = (await import(script)) as { bundlePages(): Promise<void> };
  await bundlePages();
}
