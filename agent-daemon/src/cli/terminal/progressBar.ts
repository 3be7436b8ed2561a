// A bar of a fixed width that fills in eighths of a character.

const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** @param fraction from 0 to 1; anything else is taken as the nearer end */
export function progressBar(fraction: number, width: number): string {
  const part = Number.isFinite(fraction) ? Math.min(1, Math.max(0, fraction)) : 0;
  const filled = Math.round(part * width * 8);
  const whole = "█".repeat(filled >> 3) + (eighths[filled & 7] ?? "");
  return whole.padEnd(width, "░");
}
