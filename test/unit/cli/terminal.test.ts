import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { drawChart } from "../../../agent-daemon/src/cli/terminal/chart.ts";
import { createPaint, hasColors } from "../../../agent-daemon/src/cli/terminal/colors.ts";
import {
  formatBytes,
  formatDuration,
  formatNumber,
  formatPercent,
} from "../../../agent-daemon/src/cli/terminal/numbers.ts";
import { progressBar } from "../../../agent-daemon/src/cli/terminal/progressBar.ts";
import { createScreen } from "../../../agent-daemon/src/cli/terminal/screen.ts";
import { renderTable } from "../../../agent-daemon/src/cli/terminal/table.ts";
import { harmless, truncate, visible, visibleToken, widthOf } from "../../../agent-daemon/src/cli/terminal/text.ts";
import { manualClock } from "../../support/manualClock.ts";

describe("charts", () => {
  test("draw a rising line from the lower left to the upper right", () => {
    const { lines, range } = drawChart([0, 1, 2, 3, 4, 5, 6, 7], { width: 4, height: 2 });
    expect(lines).toEqual(["⠀⠀⡠⠊", "⡠⠊⠀⠀"]);
    expect(range).toEqual({ min: 0, max: 7 });
  });

  test("leave a gap for NaN and the infinities, count them and keep the scale", () => {
    const values = [1, 1, Number.NaN, Number.POSITIVE_INFINITY, 0, 0];
    const { lines, range, gaps } = drawChart(values, { width: 3, height: 1 });
    expect(lines).toEqual(["⠉⠀⣀"]);
    expect([range, gaps]).toEqual([{ min: 0, max: 1 }, 2]);
  });

  test("grow to the right as the run does", () => {
    expect(drawChart([1], { width: 4, height: 1 }, 8).lines).toEqual(["⠄⠀⠀⠀"]);
    expect(drawChart([1, 1, 1, 1], { width: 4, height: 1 }, 8).lines).toEqual(["⠤⠤⠀⠀"]);
  });

  test("have the size they were asked for, whatever the values", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double()),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 6 }),
        (values, width, height) => {
          const { lines } = drawChart(values, { width, height });
          expect(lines.map(widthOf)).toEqual(Array(height).fill(width));
        },
      ),
    );
  });
});

describe("text", () => {
  test("from outside cannot command the terminal", () => {
    expect(visible("a\u001b[2Jb\r\n\t\u0007\u202e")).toBe("a␛[2Jb␍↵⇥\\u0007\\u202e");
    expect(harmless("\u001b[31mred\u001b[0m\n\u001b]0;title\u0007x\ty")).toBe("red\nx    y");
  });

  test("is cut by columns, not by code units", () => {
    expect(truncate("温度温度", 5)).toBe("温度…");
    expect(truncate("👩‍🔬👩‍🔬", 3)).toBe("👩‍🔬…");
    expect(truncate("plain", 5)).toBe("plain");
  });
});

describe("numbers", () => {
  test("keep four significant digits", () => {
    expect(
      [0.412345, -1.5, 12345.678, 2e-5, -0.00004321, 40, 0, Number.NaN, Number.NEGATIVE_INFINITY].map((n) =>
        formatNumber(n),
      ),
    ).toEqual(["0.4123", "−1.500", "12346", "2.00e−5", "−4.32e−5", "40", "0", "NaN", "−∞"]);
  });

  test("of time, space and parts read as people write them", () => {
    expect([0, 12_340, 59_980, 245_000, 3_753_000].map(formatDuration)).toEqual([
      "0.0 s",
      "12.3 s",
      "1:00",
      "4:05",
      "1:02:33",
    ]);
    expect([0, 999, 1000, 93_600_000, 4.5e9].map(formatBytes)).toEqual([
      "0 B",
      "999 B",
      "1.00 kB",
      "93.6 MB",
      "4.50 GB",
    ]);
    expect(formatPercent(0.7083)).toBe("70.8 %");
  });
});

describe("a token by itself", () => {
  test.each([
    [" ", "␣"],
    ["  ", "␣␣"],
    [" the", "␣the"],
    ["\n\n", "↵↵"],
    ["\t\r\n", "⇥␍↵"],
    ["a\u00a0b\u3000", "a\\u00a0b\\u3000"],
    ["\u200b", "\\u200b"],
    ["␣↵", "\\u2423\\u21b5"],
    ["温度", "温度"],
    ["\u001b[31m", "␛[31m"],
  ])("%j is shown as %s", (token, shown) => {
    expect(visibleToken(token)).toBe(shown);
  });
});

describe("tables, bars and colours", () => {
  test("put numbers to the right and cut the last column", () => {
    const columns = [{ title: "run" }, { title: "step", align: "right" as const }, { title: "note" }];
    expect(
      renderTable(
        columns,
        [
          ["toy", "7", "a long remark"],
          ["温度", "12", ""],
        ],
        22,
      ),
    ).toEqual(["run   step  note", "toy      7  a long re…", "温度    12"]);
  });

  test("a bar fills in eighths and keeps its width", () => {
    expect([0, 0.5, 0.53, 1, Number.NaN].map((part) => progressBar(part, 4))).toEqual([
      "░░░░",
      "██░░",
      "██▏░",
      "████",
      "░░░░",
    ]);
  });

  test("NO_COLOR wins over FORCE_COLOR, and FORCE_COLOR over the stream", () => {
    expect(hasColors(true, { NO_COLOR: "1", FORCE_COLOR: "1" })).toBe(false);
    expect(hasColors(false, { FORCE_COLOR: "1" })).toBe(true);
    expect(hasColors(true, { NO_COLOR: "" })).toBe(true);
    expect(createPaint(false)("red", "x")).toBe("x");
    expect(createPaint(true)("red", "x")).toBe("\u001b[31mx\u001b[39m");
  });
});

describe("a screen", () => {
  test("redraws its block in place, joins frames that come too close, and gives the cursor back", async () => {
    const clock = manualClock();
    let written = "";
    let count = 0;
    const screen = createScreen({ write: (text) => (written += text), columns: 80, rows: 24 }, clock, () => [
      `frame ${++count}`,
      "line",
    ]);
    screen.invalidate();
    expect(written).toBe("\u001b[?25l\rframe 1\u001b[K\nline\u001b[K\n\u001b[J");
    written = "";
    screen.invalidate();
    screen.invalidate();
    expect(written).toBe("");
    await clock.advance(100);
    expect(written).toBe("\u001b[2A\rframe 2\u001b[K\nline\u001b[K\n\u001b[J");
    screen.dispose();
    expect(written.endsWith("\u001b[?25h")).toBe(true);
    expect(process.listenerCount("exit")).toBe(0);
  });

  test("goes up over lines that a narrower terminal has wrapped, and leaves full lines whole", async () => {
    const clock = manualClock();
    let written = "";
    const stream = { write: (text: string) => (written += text), columns: 10, rows: 24 };
    const screen = createScreen(stream, clock, () => ["0123456789", "", "0123"]);
    screen.invalidate();
    expect(written).toBe("\u001b[?25l\r0123456789\n\u001b[K\n0123\u001b[K\n\u001b[J");
    stream.columns = 4;
    written = "";
    await clock.advance(100);
    screen.invalidate();
    expect(written.startsWith("\u001b[5A\r")).toBe(true);
    screen.dispose();
  });
});
