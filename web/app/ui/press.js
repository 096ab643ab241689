let waiting = null; // what waits for the release of a pointer; null while none is pressed

function release() {
  for (const call of waiting ?? []) call();
  waiting = null;
}

addEventListener('pointerdown', () => (waiting ??= []), { capture: true });
// A click follows the release in the same task.
for (const type of ['pointerup', 'pointercancel']) addEventListener(type, () => setTimeout(release), { capture: true });

/**
 * Calls a function, and while a pointer is pressed after its release. A layout that changes between press and release, such as by
 * what closes when a field loses the focus, would move the pressed button away, and its click would be lost.
 */
export function afterPress(call) {
  if (waiting) waiting.push(call);
  else call();
}
