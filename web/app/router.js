import { restoreScroll } from './scroll.js';
import { store } from './store.js';

const currentAddress = () => ({ path: location.pathname, query: new URLSearchParams(location.search), hash: location.hash });

/** The current address: {path, query, hash}. */
export const route = store(currentAddress());

const positions = new Map(); // key of an entry of the history → the position at which it was left

/** How the lists were left: path → {query, y}. A list beside a record keeps its filters here. */
export const left = store({});

let nextKey = 1;
let entry = history.state?.key;
let at = history.state?.at ?? 0; // the place of the entry in the history of this tab

let guard = null; // {isNeeded, ask}: see guardLeaving
let returning = null; // resolves when the browser has gone back to the screen that the user is asked about

/**
 * Asks before a user leaves a screen with something unsaved, by a link or by the buttons of the browser.
 * @param {{isNeeded: () => boolean, ask: () => Promise<boolean>}} about
 */
export const guardLeaving = (about) => (guard = about);

/** Remembers how the present address is left. */
function remember() {
  const { path, query } = route.get();
  const kept = new URLSearchParams(query);
  kept.delete('new'); // A dialog does not open again.
  left.set((was) => ({ ...was, [path]: { query: String(kept), y: window.scrollY } }));
  positions.set(entry, window.scrollY);
}

/** Undoes a step through the history, asks, and repeats it. */
async function askAndStep(step) {
  await new Promise((done) => {
    returning = done;
    history.go(-step);
  });
  if (await guard.ask()) history.go(step);
}

window.addEventListener('popstate', () => {
  if (returning) {
    returning();
    returning = null;
    return;
  }
  const known = history.state?.key;
  const step = known ? history.state.at - at : 1; // An entry that the console has not made is a new one.
  if (known && step && guard?.isNeeded() && location.pathname + location.search !== addressOf(route.get())) {
    askAndStep(step);
    return;
  }
  remember();
  at += step;
  entry = known ?? newKey();
  if (!known) history.replaceState({ key: entry, at }, '');
  route.set(currentAddress());
  restoreScroll(positions.get(entry) ?? 0);
});

function addressOf({ path, query }) {
  const text = String(query);
  return path + (text ? `?${text}` : '');
}

const newKey = () => `${Date.now()}-${nextKey++}`;

if (!entry) history.replaceState({ key: entry = newKey(), at }, '');

/** Returns the address of a path as the user left it, with its filters and page. */
export function asLeft(path) {
  const query = left.get()[path]?.query;
  return query ? `${path}?${query}` : path;
}

/**
 * Goes to a path of the console.
 * @param {string} to path with an optional query
 * @param {{replace?: boolean, back?: boolean}} [options] back: to the position at which the user left that path
 */
export function go(to, options = {}) {
  const leaves = new URL(to, location.origin).pathname !== location.pathname;
  if (!leaves || !guard?.isNeeded()) move(to, options);
  else guard.ask().then((yes) => yes && move(to, options));
}

function move(to, { replace = false, back = false }) {
  const before = route.get().path;
  if (to !== location.pathname + location.search) {
    remember();
    if (!replace) entry = newKey();
    if (!replace) at += 1;
    history[replace ? 'replaceState' : 'pushState']({ key: entry, at }, '', to);
  }
  route.set(currentAddress());
  const { path } = route.get();
  if (path !== before) restoreScroll(back ? left.get()[path]?.y ?? 0 : 0);
}

/** Returns the console's path that ?next= names; anything else, such as //host, leads to the overview. */
export function nextPath() {
  const next = new URLSearchParams(location.search).get('next') ?? '/';
  return /^\/(?![/\\])/.test(next) ? next : '/';
}

/** Returns the text of a query with changed parameters; an empty value removes its parameter. */
function changed(before, changes) {
  const query = new URLSearchParams(before);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '' || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  return query.toString();
}

/** Changes query parameters of a list that is shown beside a record, whose address stays. */
export const setLeftQuery = (path, changes) => left.set((was) => ({
  ...was, [path]: { y: 0, ...was[path], query: changed(was[path]?.query, changes) },
}));

/** Changes query parameters of the current address; an empty value removes its parameter. */
export function setQuery(changes, { replace = true } = {}) {
  const text = changed(location.search, changes);
  go(location.pathname + (text ? `?${text}` : ''), { replace });
}

/** Follows plain clicks on the console's links without loading the page again. */
export function interceptLinks() {
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]');
    const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (!link || event.defaultPrevented || event.button !== 0 || modified) return;
    if (link.target || link.origin !== location.origin || link.hasAttribute('download') || API_PATH.test(link.pathname)) return;
    if (link.getAttribute('href').startsWith('#')) return;
    event.preventDefault();
    go(link.pathname + link.search, { back: link.classList.contains('back') });
  });
  history.scrollRestoration = 'manual'; // Browsers restore the position before the data are there.
  window.addEventListener('pagehide', () => (history.scrollRestoration = 'auto')); // A reload restores it as usual.
}

// The addresses that the server answers itself; every other one belongs to the console.
const API_PATH = /^\/(v1|docs|licences|openapi\.json|metrics|healthz|readyz|assets|authenticate)(\/|$)/;

/**
 * Finds the first row whose pattern matches a path. A pattern is a path with :names; a name with ? is optional.
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
    const values = found.slice(1).map(decode);
    return values.includes(null) ? null : { row, params: Object.fromEntries(names.map((name, i) => [name, values[i]])) };
  }
  return null;
}

/** Decodes a segment of a path; returns null when its escapes are malformed, because no screen has such an address. */
function decode(part) {
  try {
    return part && decodeURIComponent(part);
  } catch {
    return null;
  }
}

const CONSOLE_PATH = /^\/(customers|review|chats|inbox|tasks|profile|notifications|personas|payers)/;

/** Returns the console's path for a notification's link, or null when the link leads elsewhere. */
export function consolePath(link) {
  if (!link) return null;
  try {
    const url = new URL(link, location.origin);
    if (url.hash.startsWith('#/')) return url.hash.slice(1);
    const own = url.origin === location.origin || CONSOLE_PATH.test(url.pathname);
    return own ? url.pathname + url.search : null;
  } catch {
    return null;
  }
}
