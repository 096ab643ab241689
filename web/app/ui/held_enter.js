/** Ignores Enter until it is released: if it is held, it must not act on what has the focus next, nor submit the form of a field. */
export function ignoreHeldEnter() {
  const held = new AbortController();
  const ignore = (event) => event.key === 'Enter' && event.preventDefault();
  for (const type of ['keydown', 'keypress']) addEventListener(type, ignore, { capture: true, signal: held.signal });
  addEventListener('keyup', () => held.abort(), { capture: true, signal: held.signal });
  addEventListener('blur', () => held.abort(), { signal: held.signal }); // of the window: no keyup will come
}

let pressedAt = null; // where Enter was pressed that is still held

/** Keeps a held Enter from pressing what has the focus next: a link of the menu that closes it would open the menu again. */
export function keepEnterInPlace() {
  const check = (event) => {
    if (event.key !== 'Enter') return;
    if (event.type === 'keydown' && !event.repeat) pressedAt = event.target;
    else if (pressedAt && pressedAt !== event.target) event.preventDefault();
  };
  const forget = () => (pressedAt = null);
  for (const type of ['keydown', 'keypress']) addEventListener(type, check, { capture: true });
  addEventListener('keyup', forget, { capture: true });
  addEventListener('blur', forget);
}
