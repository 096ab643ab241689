// A minimal browser for unit tests in Node.js. Import it before the console's modules.
import { readFileSync } from 'node:fs';

class Storage {
  #values = new Map();
  getItem(key) { return this.#values.get(key) ?? null; }
  setItem(key, value) { this.#values.set(key, String(value)); }
  removeItem(key) { this.#values.delete(key); }
  clear() { this.#values.clear(); }
}

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

const events = new EventTarget();
define('window', globalThis);
define('addEventListener', events.addEventListener.bind(events));
define('removeEventListener', events.removeEventListener.bind(events));
define('dispatchEvent', events.dispatchEvent.bind(events));
define('localStorage', new Storage());
define('navigator', { languages: ['de-CH'], userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0', platform: 'Linux' });
const screens = { textContent: readFileSync(new URL('../screens.json', import.meta.url), 'utf8') };
define('document', {
  documentElement: { dataset: {} }, visibilityState: 'visible', addEventListener() {},
  getElementById: (id) => (id === 'screens' ? screens : null),
});

const state = { url: new URL('http://bank.example/') };
define('location', {
  get pathname() { return state.url.pathname; },
  get search() { return state.url.search; },
  get hash() { return state.url.hash; },
  get origin() { return state.url.origin; },
});
define('history', {
  pushState: (_, __, to) => { state.url = new URL(to, state.url); },
  replaceState: (_, __, to = state.url) => { state.url = new URL(to, state.url); },
});
define('scrollTo', () => {});
delete globalThis.BroadcastChannel; // An open channel keeps the process running.

/** The requests so far, oldest first: {url, init}. */
export const requests = [];

let answers = [];

/** Sets the answers to the next requests: a Response, an Error to throw, or a function of (url, init) each. */
export function answerWith(...next) {
  requests.length = 0;
  answers = next;
}

define('fetch', async (url, init) => {
  if (String(url).startsWith('file:')) return new Response(readFileSync(new URL(url)));
  requests.push({ url: String(url), init });
  const next = answers.shift();
  if (!next) throw new TypeError(`unexpected request for ${url}`);
  if (next instanceof Error) throw next;
  return typeof next === 'function' ? next(url, init) : next;
});

/** Returns a JSON response. */
export const json = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers });

/** Signs a user in for an hour. */
export function signedIn() {
  localStorage.setItem('kontor.session', JSON.stringify({
    access_token: 'first', refresh_token: 'refresh', expires_at: Date.now() + 3_600_000, user_id: 'u1', login: 'anna@example.ch',
  }));
}
