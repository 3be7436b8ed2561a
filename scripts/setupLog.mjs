// How every set-up step reports: a line with the seconds since the start, or a reason to stop with what to do next.
const started = Date.now();

export function say(line) {
  console.log(`set-up ${((Date.now() - started) / 1000).toFixed(0).padStart(3)} s  ${line}`);
}

export function stop(sentence, next) {
  console.error(`set-up stopped: ${sentence}\n  next: ${next}`);
  process.exit(1);
}
