// Ends every process of a temporary home and removes it, as soon as the process that started this one is gone, however
// it went: the other end of standard input closes.
import { readdirSync, readFileSync, rmSync } from "node:fs";

const home = process.argv[2];
process.stdin.resume();
process.stdin.on("end", () => {
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    try {
      if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${home}`))
        process.kill(Number(pid), 9);
    } catch {
      // It has ended meanwhile, or is another user's.
    }
  }
  rmSync(home, { recursive: true, force: true });
});
