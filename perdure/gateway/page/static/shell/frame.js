// Draws at most once per animation frame, however many changes there were.

const HIDDEN_INTERVAL = 200; // milliseconds: a hidden page gets no animation frames

/** Return a function that calls `draw` once in the next animation frame. */
export function oncePerFrame(draw) {
  let scheduled = false;
  const run = () => {
    scheduled = false;
    draw();
  };
  return () => {
    if (scheduled) return;
    scheduled = true;
    if (document.hidden) setTimeout(run, HIDDEN_INTERVAL);
    else requestAnimationFrame(run);
  };
}
