import { store } from './store.js';

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search), hash: location.hash });

/** Where the user is: {path, query, hash}. */
export const route = store(here());

window.addEventListener('popstate', () => route.set(here()));

/**
 * Goes to a path of the console.
 * @param {string} to path with an optional query
 * @param {{replace?: boolean}} [options]
 */
export function go(to, { replace = false } = {}) {
  if (to !== location.pathname + location.search) history[replace ? 'replaceState' : 'pushState'](null, '', to);
  const before = route.get().path;
  route.set(here());
  if (route.get().path !== before) window.scrollTo(0, 0);
}

/** Changes some parameters of the present address; an empty value removes its parameter. */
export function setQuery(changes, { replace = true } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '' || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ''), { replace });
}

/** Follows plain clicks on links of our own origin without loading the page again. */
export function interceptLinks() {
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]');
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.origin !== location.origin || link.hasAttribute('download') || !isOurs(link.pathname)) return;
    if (link.getAttribute('href').startsWith('#')) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

const served = /^\/(v1|docs|openapi\.json|metrics|healthz|readyz|assets|authenticate)(\/|$)/;
const isOurs = (path) => !served.test(path);

/**
 * Finds the first pattern that fits a path. A pattern is a path with :names; a name with ? may be missing.
 * @param {{path: string}[]} table
 * @param {string} path
 */
export function match(table, path) {
  for (const row of table) {
    const names = [];
    const source = row.path.replace(/\/:(\w+)(\??)/g, (_, name, optional) => {
      names.push(name);
      return optional ? '(?:/([^/]+))?' : '/([^/]+)';
    });
    const found = new RegExp(`^${source}/?$`).exec(path);
    if (!found) continue;
    const values = found.slice(1).map(decoded);
    return values.includes(null) ? null : { row, params: Object.fromEntries(names.map((name, i) => [name, values[i]])) };
  }
  return null;
}

/** A part of a path without its escapes, or null when they are malformed: no page has such an address. */
function decoded(part) {
  try {
    return part && decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The path of the console behind a link of a notification, or null for a foreign address. */
export function ownPath(link) {
  if (!link) return null;
  try {
    const url = new URL(link, location.origin);
    if (url.hash.startsWith('#/')) return url.hash.slice(1);
    return url.origin === location.origin || /^\/(customers|chats|tasks|profile|notifications|personas|payers)/.test(url.pathname) ? url.pathname + url.search : null;
  } catch {
    return null;
  }
}
