/**
 * What a page remembers over a reload, until its tab is closed: the step of a form that waits for a code. Only the sign-in value is
 * kept, no password, code or token.
 * @param {string} name
 */
export function remembered(name) {
  const key = `kontor.${name}`;
  return {
    get: () => sessionStorage.getItem(key) ?? '',
    set: (value) => sessionStorage.setItem(key, value),
    clear: () => sessionStorage.removeItem(key),
  };
}

/** Returns the value in the link of a code message, #confirm=value, and removes it from the address; else an empty text. */
export function confirmedByLink() {
  const given = /^#confirm=(.+)$/.exec(location.hash)?.[1];
  if (!given) return '';
  history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(given.replaceAll('+', '%20'));
  } catch {
    return '';
  }
}
