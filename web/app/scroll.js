const LIMIT_MS = 5000; // for the data of a screen
const USER_EVENTS = ['wheel', 'touchstart', 'pointerdown', 'keydown'];

let stop = () => {};

/**
 * Scrolls the page to a position, again whenever its height changes, because a screen loads its data after it is shown. It
 * ends when the user does something, or after a few seconds.
 * @param {number} y pixels from the top
 */
export function restoreScroll(y) {
  stop();
  window.scrollTo(0, y);
  if (!y) return;
  const observer = new ResizeObserver(() => window.scrollTo(0, y));
  const timer = setTimeout(() => stop(), LIMIT_MS);
  stop = () => {
    observer.disconnect();
    clearTimeout(timer);
    for (const name of USER_EVENTS) removeEventListener(name, stop);
    stop = () => {};
  };
  for (const name of USER_EVENTS) addEventListener(name, stop, { passive: true });
  observer.observe(document.body);
}
