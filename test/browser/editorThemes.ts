// The four kinds of theme as an editor puts them on a page: classes of the body and variables of the root element.
import type { Page } from "playwright-core";

interface EditorTheme {
  readonly classes: string;
  readonly variables: Readonly<Record<string, string>>;
}

const common = {
  "font-family": "system-ui, Ubuntu, sans-serif",
  "font-size": "13px",
  "font-weight": "normal",
  "editor-font-family": "'DejaVu Sans Mono', monospace",
  "editor-font-size": "12px",
};

const light = {
  ...common,
  foreground: "#3b3b3b",
  descriptionForeground: "#3b3b3b",
  errorForeground: "#f85149",
  "editor-background": "#ffffff",
  "editor-foreground": "#3b3b3b",
  "editorWidget-background": "#f8f8f8",
  "widget-border": "#e5e5e5",
  "panel-border": "#e5e5e5",
  focusBorder: "#005fb8",
  "button-background": "#005fb8",
  "button-foreground": "#ffffff",
  "button-hoverBackground": "#0258a8",
  "button-secondaryBackground": "#e5e5e5",
  "button-secondaryForeground": "#3b3b3b",
  "button-secondaryHoverBackground": "#cccccc",
  "input-background": "#ffffff",
  "input-foreground": "#3b3b3b",
  "input-placeholderForeground": "#767676",
  "settings-textInputBorder": "#cecece",
  "checkbox-background": "#f8f8f8",
  "checkbox-border": "#cecece",
  "dropdown-background": "#ffffff",
  "dropdown-border": "#cecece",
  "dropdown-foreground": "#3b3b3b",
  "list-activeSelectionBackground": "#e8e8e8",
  "list-activeSelectionForeground": "#000000",
  "list-hoverBackground": "#f2f2f2",
  "textLink-foreground": "#005fb8",
  "editorWarning-foreground": "#bf8803",
  "editorError-foreground": "#e51400",
  "editorInfo-foreground": "#1a85ff",
  "charts-blue": "#1a85ff",
  "charts-orange": "#d18616",
  "charts-green": "#388a34",
  "charts-purple": "#652d90",
  "charts-red": "#e51400",
  "charts-yellow": "#bf8803",
  "progressBar-background": "#005fb8",
  "terminal-ansiRed": "#cd3131",
  "terminal-ansiGreen": "#107c10",
  "terminal-ansiYellow": "#949800",
};

const dark = {
  ...common,
  foreground: "#cccccc",
  descriptionForeground: "#9d9d9d",
  errorForeground: "#f85149",
  "editor-background": "#1f1f1f",
  "editor-foreground": "#cccccc",
  "editorWidget-background": "#202020",
  "widget-border": "#313131",
  "panel-border": "#2b2b2b",
  focusBorder: "#0078d4",
  "button-background": "#0078d4",
  "button-foreground": "#ffffff",
  "button-hoverBackground": "#026ec1",
  "button-secondaryBackground": "#313131",
  "button-secondaryForeground": "#cccccc",
  "button-secondaryHoverBackground": "#3c3c3c",
  "input-background": "#313131",
  "input-foreground": "#cccccc",
  "input-placeholderForeground": "#989898",
  "settings-textInputBorder": "#3c3c3c",
  "checkbox-background": "#313131",
  "checkbox-border": "#3c3c3c",
  "dropdown-background": "#313131",
  "dropdown-border": "#3c3c3c",
  "dropdown-foreground": "#cccccc",
  "list-activeSelectionBackground": "#04395e",
  "list-activeSelectionForeground": "#ffffff",
  "list-hoverBackground": "#2a2d2e",
  "textLink-foreground": "#4daafc",
  "editorWarning-foreground": "#cca700",
  "editorError-foreground": "#f14c4c",
  "editorInfo-foreground": "#3794ff",
  "charts-blue": "#3794ff",
  "charts-orange": "#d18616",
  "charts-green": "#89d185",
  "charts-purple": "#b180d7",
  "charts-red": "#f14c4c",
  "charts-yellow": "#cca700",
  "progressBar-background": "#0078d4",
  "terminal-ansiRed": "#cd3131",
  "terminal-ansiGreen": "#0dbc79",
  "terminal-ansiYellow": "#e5e510",
};

const highContrast = {
  ...dark,
  foreground: "#ffffff",
  descriptionForeground: "rgba(255, 255, 255, 0.7)",
  errorForeground: "#f48771",
  "editor-background": "#000000",
  "editor-foreground": "#ffffff",
  "editorWidget-background": "#0c141f",
  contrastBorder: "#6fc3df",
  "widget-border": "#6fc3df",
  "panel-border": "#6fc3df",
  focusBorder: "#f38518",
  "button-background": "transparent",
  "button-foreground": "#ffffff",
  "button-border": "#6fc3df",
  "button-secondaryBackground": "transparent",
  "button-secondaryForeground": "#ffffff",
  "button-secondaryHoverBackground": "transparent",
  "input-background": "#000000",
  "input-foreground": "#ffffff",
  "settings-textInputBorder": "#6fc3df",
  "checkbox-background": "#000000",
  "checkbox-border": "#6fc3df",
  "dropdown-background": "#000000",
  "dropdown-border": "#6fc3df",
  "dropdown-foreground": "#ffffff",
  "list-activeSelectionBackground": "transparent",
  "list-activeSelectionForeground": "#ffffff",
  "list-hoverBackground": "rgba(255, 255, 255, 0.1)",
  "textLink-foreground": "#21a6ff",
};

const highContrastLight = {
  ...light,
  foreground: "#292929",
  descriptionForeground: "rgba(41, 41, 41, 0.7)",
  errorForeground: "#b5200d",
  "editor-foreground": "#292929",
  "editorWidget-background": "#ffffff",
  contrastBorder: "#0f4a85",
  "widget-border": "#0f4a85",
  "panel-border": "#0f4a85",
  focusBorder: "#006bbd",
  "button-border": "#0f4a85",
  "button-background": "#0f4a85",
  "button-hoverBackground": "#0f4a85",
  "button-secondaryBackground": "#ffffff",
  "button-secondaryForeground": "#292929",
  "settings-textInputBorder": "#0f4a85",
  "checkbox-background": "#ffffff",
  "checkbox-border": "#0f4a85",
  "dropdown-border": "#0f4a85",
  "dropdown-foreground": "#292929",
  "list-activeSelectionBackground": "transparent",
  "list-activeSelectionForeground": "#292929",
  "list-hoverBackground": "rgba(15, 74, 133, 0.1)",
  "textLink-foreground": "#0f4a85",
  "editorWarning-foreground": "#895503",
  "editorError-foreground": "#b5200d",
  "charts-blue": "#0063d3",
  "charts-green": "#374e06",
  "charts-yellow": "#895503",
  "charts-red": "#b5200d",
};

export const editorThemes = {
  light: { classes: "vscode-light", variables: light },
  dark: { classes: "vscode-dark", variables: dark },
  highContrast: { classes: "vscode-high-contrast", variables: highContrast },
  highContrastLight: { classes: "vscode-high-contrast vscode-high-contrast-light", variables: highContrastLight },
} as const satisfies Record<string, EditorTheme>;
export type EditorThemeName = keyof typeof editorThemes;

function dress({ classes, variables }: EditorTheme): void {
  const put = () => {
    const { style } = document.documentElement;
    for (const name of [...style]) if (name.startsWith("--vscode-")) style.removeProperty(name);
    for (const [name, value] of Object.entries(variables)) style.setProperty(`--vscode-${name}`, value);
    document.body.className = classes;
  };
  if (document.body !== null) {
    put();
    return;
  }
  const observer = new MutationObserver(() => {
    if (document.body === null) return;
    observer.disconnect();
    put();
  });
  observer.observe(document, { childList: true, subtree: true });
}

/** Before the page loads: it opens in the theme, as in an editor. */
export async function openInTheme(page: Page, name: EditorThemeName): Promise<void> {
  await page.addInitScript(dress, editorThemes[name]);
}

export async function switchTheme(page: Page, name: EditorThemeName): Promise<void> {
  await page.evaluate(dress, editorThemes[name]);
}
