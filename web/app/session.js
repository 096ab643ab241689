import { exchange, forgetExchange } from './refresh.js';
import { store } from './store.js';

// Where the tokens live. The access token is kept beside the refresh token in localStorage, not in memory only:
//  * every refresh kills the old refresh token, and using a dead one ends the session. A page that refreshed at each
//    load would lose the session whenever somebody reloads twice in a row; so we refresh only when the hour is over.
//  * all tabs share one pair, so that no tab ever holds a dead refresh token, and a link opened in a new tab works.
// What speaks against it, a script injected into the page, is met where it must be met: the content security policy
// admits no foreign and no inline script, and the console never turns text into markup. Such a script could use a
// token in memory just as well. The pair lives for 24 hours at most, and signing out kills it on the server.
const KEY = 'kontor.session';
const DEVICE_KEY = 'kontor.device';
const REFRESH_EARLY_MS = 30_000; // So that a token does not run out between here and the server.

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY));
  } catch {
    return null;
  }
}

function write(value) {
  if (value) localStorage.setItem(KEY, JSON.stringify(value));
  else localStorage.removeItem(KEY);
  session.set(value);
}

/** The signed-in session {access_token, refresh_token, expires_at, user_id, login}, or null. */
export const session = store(read());

/** True while the session is over but what is on the screen is kept: the dialog to sign in again shows then. */
export const expired = store(false);

/** The question for the password of somebody whose session goes on: {answer}, the function that takes it, or null. */
export const challenge = store(null);

let challenged = null;

/**
 * Asks for the password again; requests that need it at the same time share one question.
 * @returns {Promise<boolean>} whether it was given
 */
export function proveAgain() {
  challenged ??= new Promise((answer) => challenge.set({ answer })).finally(() => {
    challenged = null;
    challenge.set(null);
  });
  return challenged;
}

/** Takes over what another tab has written. */
function follow() {
  const now = read();
  if (now?.access_token === session.get()?.access_token) return;
  session.set(now);
  if (now && expired.get()) resume();
}

window.addEventListener('storage', (event) => (event.key === KEY || event.key === null) && follow());
window.addEventListener('pageshow', (event) => event.persisted && follow()); // A page that was put aside heard nothing.

let waiting = []; // Requests that wait for the user to sign in again.

function resume() {
  expired.set(false);
  const all = waiting;
  waiting = [];
  for (const each of all) each.resolve(session.get()?.access_token);
}

/**
 * Keeps the pair of tokens of a successful sign-in or refresh.
 * @param {{access_token: string, refresh_token?: string, expires_in: number, user_id?: string}} pair
 * @param {string} [login] what the user typed to sign in
 * @param {number} [at] when the pair was made
 */
export function adopt(pair, login, at = Date.now()) {
  const before = session.get();
  write({
    access_token: pair.access_token,
    refresh_token: pair.refresh_token,
    expires_at: at + pair.expires_in * 1000,
    user_id: pair.user_id ?? before?.user_id,
    login: login ?? before?.login,
  });
  if (expired.get()) resume();
}

/** Forgets the session in all tabs; requests that wait for it fail. */
export function forget() {
  challenge.get()?.answer(false);
  const all = waiting;
  waiting = [];
  expired.set(false);
  write(null);
  forgetExchange();
  for (const each of all) each.reject(new Error('signed out'));
}

/** A token fit for the next request, refreshed if need be; null when nobody is signed in. */
export async function freshToken() {
  const now = session.get();
  if (!now) return null;
  if (now.expires_at - Date.now() > REFRESH_EARLY_MS) return now.access_token;
  return renew(now.access_token);
}

let flight = null;

/**
 * Replaces a token that is refused or about to end: by refreshing it, and where that is refused too, by asking the
 * user to sign in again. The promise waits for him, so that the request behind it goes on where it stood.
 * @param {string} stale the token that no longer serves
 */
export function renew(stale) {
  flight ??= exclusively('kontor.refresh', () => refreshPair(stale)).finally(() => (flight = null));
  return flight.then((token) => token ?? signInAgain());
}

/** Waits until the user has signed in again in the dialog, here or in another tab. */
function signInAgain() {
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    expired.set(true);
  });
}

/** Runs fn in one tab at a time. Without the browser's locks (old ones, plain http on a foreign host) it just runs. */
function exclusively(name, fn) {
  return navigator.locks ? navigator.locks.request(name, fn) : fn();
}

async function refreshPair(stale) {
  const now = read(); // Another tab may have been here first; then its pair is ours.
  if (!now) return null;
  if (now.access_token !== stale) {
    session.set(now);
    return now.access_token;
  }
  if (!now.refresh_token) return null;
  const { answer, at } = await exchange(now.refresh_token, { 'X-Device-ID': deviceName() });
  if (answer.ok) {
    adopt(await answer.json(), undefined, at);
    forgetExchange();
    return session.get().access_token;
  }
  if (answer.status === 429 || answer.status >= 500) throw new RefreshLater(answer);
  return null;
}

/** The refresh could not be tried now; the session is not lost. */
export class RefreshLater extends Error {
  constructor(answer) {
    super('refresh later');
    this.answer = answer;
  }
}

const DEVICE_TOKENS_KEY = 'kontor.device_tokens';
const MOST_DEVICE_TOKENS = 3; // Of the people who signed in here last.

function deviceTokens() {
  try {
    return JSON.parse(localStorage.getItem(DEVICE_TOKENS_KEY)) ?? {};
  } catch {
    return {};
  }
}

/** The headers that make this browser known to the server, so that nobody who guesses elsewhere keeps its user out. */
export function deviceHeaders(login) {
  const token = deviceTokens()[login.toLowerCase()];
  return token ? { 'X-Device-Token': token } : {};
}

/** Keeps the device token of a sign-in; it replaces the one before. */
export function keepDeviceToken(login, token) {
  if (!token) return;
  const { [login.toLowerCase()]: _, ...others } = deviceTokens();
  const kept = [...Object.entries(others), [login.toLowerCase(), token]].slice(-MOST_DEVICE_TOKENS);
  localStorage.setItem(DEVICE_TOKENS_KEY, JSON.stringify(Object.fromEntries(kept)));
}

/** A name for this browser that its owner recognises in the list of his sessions. */
export function deviceName() {
  let name = localStorage.getItem(DEVICE_KEY);
  if (!name) {
    const agent = navigator.userAgent;
    const browser = /Edg\//.test(agent) ? 'Edge' : /Firefox\//.test(agent) ? 'Firefox' : /Chrome\//.test(agent) ? 'Chrome' : /Safari\//.test(agent) ? 'Safari' : 'Browser';
    const system = /Android/.test(agent) ? 'Android' : /iPhone|iPad/.test(agent) ? 'iOS' : /Windows/.test(agent) ? 'Windows' : /Mac OS/.test(agent) ? 'macOS' : /Linux/.test(agent) ? 'Linux' : 'device';
    name = `${browser} on ${system} (${crypto.getRandomValues(new Uint16Array(1))[0].toString(16).padStart(4, '0')})`;
    localStorage.setItem(DEVICE_KEY, name);
  }
  return name;
}
