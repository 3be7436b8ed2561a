// biome-ignore-all lint/a11y/useAriaPropsSupportedByRole: the toolkit's elements have roles that the rule does not know
// Button, dropdown, text field, checkbox and data grid, as thin wrappers. The only file that imports the archived toolkit: leaving
// it is a change here and nowhere else.
import {
  provideVSCodeDesignSystem,
  vsCodeButton,
  vsCodeCheckbox,
  vsCodeDataGrid,
  vsCodeDataGridCell,
  vsCodeDataGridRow,
  vsCodeDropdown,
  vsCodeOption,
  vsCodeTextField,
} from "@vscode/webview-ui-toolkit";
import type { ComponentChildren, HTMLAttributes } from "preact";

provideVSCodeDesignSystem().register(
  vsCodeButton(),
  vsCodeCheckbox(),
  vsCodeDataGrid(),
  vsCodeDataGridCell(),
  vsCodeDataGridRow(),
  vsCodeDropdown(),
  vsCodeOption(),
  vsCodeTextField(),
);

type ElementProps = HTMLAttributes<HTMLElement> & Record<string, unknown>;
declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "vscode-button": ElementProps;
      "vscode-checkbox": ElementProps;
      "vscode-data-grid": ElementProps;
      "vscode-data-grid-cell": ElementProps;
      "vscode-data-grid-row": ElementProps;
      "vscode-dropdown": ElementProps;
      "vscode-option": ElementProps;
      "vscode-text-field": ElementProps;
    }
  }
}

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onPress: () => void;
  readonly look?: "primary" | "secondary" | "icon";
  readonly disabled?: boolean;
  /** What a screen reader says instead of the content, and the tooltip. */
  readonly label?: string;
  /** The tooltip, where it says more than the content. */
  readonly hint?: string;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
}

export function Button({
  children,
  onPress,
  look = "secondary",
  disabled = false,
  label,
  hint,
  pressed,
  expanded,
}: ButtonProps) {
  return (
    <vscode-button
      appearance={look}
      disabled={disabled}
      onClick={() => {
        if (!disabled) onPress();
      }}
      aria-label={label}
      title={hint ?? label}
      aria-pressed={pressed}
      aria-expanded={expanded}
    >
      {children}
    </vscode-button>
  );
}

interface DropdownProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly onChange: (value: string) => void;
}

export function Dropdown({ label, value, options, onChange }: DropdownProps) {
  return (
    <vscode-dropdown
      aria-label={label}
      title={label}
      value={value}
      onChange={(event: Event) => {
        const chosen = (event.currentTarget as HTMLElement & { value: string }).value;
        if (chosen !== value) onChange(chosen);
      }}
    >
      {options.map((option) => (
        <vscode-option key={option.value} value={option.value} selected={option.value === value}>
          {option.label}
        </vscode-option>
      ))}
    </vscode-dropdown>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly placeholder?: string;
  readonly onEnter?: (shift: boolean) => void;
  readonly onEscape?: () => void;
  readonly id?: string;
}

export function TextField({ label, value, onInput, placeholder, onEnter, onEscape, id }: TextFieldProps) {
  return (
    <vscode-text-field
      id={id}
      aria-label={label}
      placeholder={placeholder ?? label}
      value={value}
      onInput={(event: Event) => onInput((event.currentTarget as HTMLElement & { value: string }).value)}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Enter") onEnter?.(event.shiftKey);
        if (event.key === "Escape") onEscape?.();
      }}
    />
  );
}

interface CheckboxProps {
  readonly children: ComponentChildren;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function Checkbox({ children, checked, onChange, disabled = false }: CheckboxProps) {
  return (
    <vscode-checkbox
      checked={checked}
      disabled={disabled}
      onChange={(event: Event) => {
        const now = (event.currentTarget as HTMLElement & { checked: boolean }).checked;
        if (now !== checked) onChange(now);
      }}
    >
      {children}
    </vscode-checkbox>
  );
}

export interface GridColumn<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly numeric?: boolean;
  /** A CSS track size; `1fr` by default. */
  readonly width?: string;
}

interface DataGridProps<Row> {
  readonly label: string;
  readonly columns: readonly GridColumn<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
}

/** For tables of up to some hundred rows; longer ones are virtual lists. Arrow keys move between cells, Enter opens a row. */
export function DataGrid<Row>({ label, columns, rows, keyOf, onOpen }: DataGridProps<Row>) {
  const template = columns.map((column) => column.width ?? "1fr").join(" ");
  const kind = (column: GridColumn<Row>) => (column.numeric === true ? "number" : "");
  return (
    <vscode-data-grid aria-label={label} generate-header="none" grid-template-columns={template}>
      <vscode-data-grid-row row-type="header" grid-template-columns={template}>
        {columns.map((column, index) => (
          <vscode-data-grid-cell key={column.key} cell-type="columnheader" grid-column={index + 1} class={kind(column)}>
            {column.title}
          </vscode-data-grid-cell>
        ))}
      </vscode-data-grid-row>
      {rows.map((row) => (
        <vscode-data-grid-row
          key={keyOf(row)}
          grid-template-columns={template}
          class={onOpen === undefined ? "" : "opens"}
          onClick={() => onOpen?.(row)}
          onKeyDown={(event: KeyboardEvent) => {
            if (event.key !== "Enter" || onOpen === undefined) return;
            event.preventDefault();
            onOpen(row);
          }}
        >
          {columns.map((column, index) => (
            <vscode-data-grid-cell key={column.key} grid-column={index + 1} class={kind(column)}>
              {column.cell(row)}
            </vscode-data-grid-cell>
          ))}
        </vscode-data-grid-row>
      ))}
    </vscode-data-grid>
  );
}
