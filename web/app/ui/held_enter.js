/** Ignores Enter until it is released: if it is held, it must not submit the form, or press the button, that has the focus next. */
export function ignoreHeldEnter() {
  const held = new AbortController();
  const ignore = (event) => event.key === 'Enter' && event.preventDefault();
  for (const type of ['keydown', 'keypress']) addEventListener(type, ignore, { capture: true, signal: held.signal });
  addEventListener('keyup', () => held.abort(), { capture: true, signal: held.signal });
  addEventListener('blur', () => held.abort(), { signal: held.signal }); // of the window: no keyup will come
}
