// Charts that move together are drawn in turn: as many a frame as the frame has time for, painting included, the others in the next.

interface Drawn {
  drawNow(): void;
}

/** Milliseconds that drawing and painting may take of a frame; events and the rest of the page need their share too. */
const budget = 2;

const waiting = new Set<Drawn>();
let front: Drawn | null = null;
let frontHadTurn = false;
let scheduled = false;
/** How many are drawn in one frame: follows what the last frames took. */
let quota = 2;
let begun = 0;
let drawn = 0;

// A message is delivered when the frame has been painted: only then is it known what drawing took.
const painted = new MessageChannel();
painted.port1.onmessage = () => {
  const took = Math.max(0.1, performance.now() - begun);
  const fits = (drawn * budget) / took;
  // Down at once, up little by little: one slow frame is seen, one careful frame is not.
  if (fits < quota) quota = Math.max(1, Math.floor(fits));
  else if (drawn >= quota) quota += 1;
  if (waiting.size > 0 || front !== null) schedule();
};

/** @param underHand what a person moves now: it waits for no other, and lets others have every second frame at least */
export function drawInTurn(one: Drawn, underHand: boolean): void {
  if (underHand) {
    waiting.delete(one);
    front = one;
  } else waiting.add(one);
  schedule();
}

export function forget(one: Drawn): void {
  waiting.delete(one);
  if (front === one) front = null;
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

function draw(): void {
  scheduled = false;
  begun = performance.now();
  drawn = 0;
  frontHadTurn = front !== null && (quota > 1 || !frontHadTurn || waiting.size === 0);
  if (front !== null && frontHadTurn) {
    const one = front;
    front = null;
    one.drawNow();
    drawn = 1;
  }
  for (const one of waiting) {
    if (drawn >= quota) break;
    waiting.delete(one);
    one.drawNow();
    drawn += 1;
  }
  painted.port2.postMessage(null);
}
