import { exchangeToken, forgetExchange } from './token_refresh.js';
import { store } from './store.js';

// Storage of the tokens. Both tokens are kept in localStorage, not only in memory:
//  * Every refresh invalidates the old refresh token, and using an invalid one ends the session. A page that refreshed
//    at each load would lose the session when the user reloads twice in a row; so it refreshes only near expiry.
//  * All tabs share one pair, so that no tab holds an invalid refresh token and a link opened in a new tab works.
// The risk is an injected script. The content security policy rejects foreign and inline scripts, and the console never
// turns text into markup. An injected script could use a token in memory just as well. The pair expires after 24 hours
// at the latest, and signing out revokes it on the server.
const KEY = 'kontor.session';
const DEVICE_KEY = 'kontor.device';
const REFRESH_EARLY_MS = 30_000; // so that a token does not expire on its way to the server

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

/** True after the session has expired and until the user signs in again; the screen stays, under a dialog. */
export const expired = store(false);

/**
 * The open request for a proof of identity, or null: {level, answer: (given: boolean) => void}. The level is 'fresh'
 * (any proof) or 'aal2' (a second factor or a passkey).
 */
export const proofRequest = store(null);

/** The open request to set up a second factor, {answer: (done: boolean) => void}, or null. */
export const factorRequest = store(null);

/** Returns a function that opens a request in a store; calls share the open one. */
function sharedRequest(place) {
  let open = null;
  return (about) => {
    open ??= new Promise((answer) => place.set({ ...about, answer })).finally(() => {
      open = null;
      place.set(null);
    });
    return open;
  };
}

const requestProof = sharedRequest(proofRequest);

/**
 * Asks a user whose session is valid for a proof of their identity. Concurrent requests share one dialog, which asks for
 * the strongest proof that any of them needs.
 * @param {'fresh'|'aal2'} level
 * @returns {Promise<boolean>} whether the user gave it
 */
export function reauthenticate(level) {
  if (level === 'aal2') proofRequest.set((was) => was && { ...was, level });
  return requestProof({ level });
}

/**
 * Asks the user to set up a second factor, because the server requires one; concurrent requests share one dialog.
 * @returns {Promise<boolean>} whether the user did
 */
export const requireFactor = sharedRequest(factorRequest);

/** Reads the session that another tab has written. */
function synchronise() {
  const now = read();
  const before = session.get();
  if (now?.access_token === before?.access_token) return;
  if (now?.user_id !== before?.user_id) reject(); // The requests of one user are never sent as another.
  session.set(now);
  if (now && expired.get()) resume();
}

window.addEventListener('storage', (event) => (event.key === KEY || event.key === null) && synchronise());
window.addEventListener('pageshow', (event) => event.persisted && synchronise()); // A page in the back/forward cache gets no events.

let waiting = []; // requests that wait until the user signs in again

function resume() {
  expired.set(false);
  const all = waiting;
  waiting = [];
  for (const each of all) each.resolve(session.get()?.access_token);
}

function reject() {
  expired.set(false);
  const all = waiting;
  waiting = [];
  for (const each of all) each.reject(new Error('signed out'));
}

/**
 * Keeps the tokens of a successful sign-in or refresh.
 * @param {{access_token: string, refresh_token?: string, expires_in: number, user_id?: string}} tokens
 * @param {string|null} [login] the credential that the user typed; null for a sign-in without one
 * @param {number} [at] when the tokens were issued
 */
export function saveTokens(tokens, login, at = Date.now()) {
  const before = session.get();
  write({
    access_token: tokens.access_token,
    refresh_token: tokens.refresh_token,
    expires_at: at + tokens.expires_in * 1000,
    user_id: tokens.user_id ?? before?.user_id,
    login: login === undefined ? before?.login : login,
  });
  if (expired.get()) resume();
}

/** Deletes the session in all tabs; requests that wait for it fail. */
export function clearSession() {
  proofRequest.get()?.answer(false);
  factorRequest.get()?.answer(false);
  reject();
  write(null);
  forgetExchange();
}

/** Returns a token for the next request, refreshed when it is about to expire; null when no user is signed in. */
export async function freshToken() {
  const now = session.get();
  if (!now) return null;
  if (now.expires_at - Date.now() > REFRESH_EARLY_MS) return now.access_token;
  return renew(now.access_token);
}

let refreshing = null;

/**
 * Replaces a token that the server rejected or that is about to expire. When the refresh is rejected too, it asks the
 * user to sign in again; the promise waits for that, so that the pending request continues afterwards.
 * @param {string} stale the token to replace
 */
export function renew(stale) {
  refreshing ??= withLock('kontor.refresh', () => refresh(stale)).finally(() => (refreshing = null));
  return refreshing.then((token) => token ?? waitForSignIn(stale));
}

/**
 * Waits until the user has signed in again in the dialog, here or in another tab, which may have happened while the server
 * was rejecting the refresh. Fails after a sign-out.
 */
function waitForSignIn(stale) {
  const now = read();
  if (!now) return Promise.reject(new Error('signed out'));
  if (now.access_token !== stale) return now.access_token;
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    expired.set(true);
  });
}

/** Runs fn in one tab at a time. Browsers without locks (old ones, or plain http on another host) run it at once. */
function withLock(name, fn) {
  return navigator.locks ? navigator.locks.request(name, fn) : fn();
}

async function refresh(stale) {
  const now = read(); // Another tab may have refreshed already.
  if (!now) return null;
  if (now.access_token !== stale) {
    session.set(now);
    return now.access_token;
  }
  if (!now.refresh_token) return null;
  const { response, at } = await exchangeToken(now.refresh_token, { 'X-Device-ID': deviceName() });
  if (response.ok) {
    saveTokens(await response.json(), undefined, at);
    return session.get().access_token;
  }
  if (response.status === 429 || response.status >= 500) throw new RefreshUnavailable(response);
  return null;
}

/** The server could not refresh the token now; the session is still valid. */
export class RefreshUnavailable extends Error {
  constructor(response) {
    super('refresh unavailable');
    this.response = response;
  }
}

const DEVICE_TOKENS_KEY = 'kontor.device_tokens';
const MAX_DEVICE_TOKENS = 3; // of the users who signed in here last

function deviceTokens() {
  try {
    return JSON.parse(localStorage.getItem(DEVICE_TOKENS_KEY)) ?? {};
  } catch {
    return {};
  }
}

/** Returns the headers that identify this browser, so that a lockout caused elsewhere does not affect its user. */
export function deviceHeaders(login) {
  const token = deviceTokens()[login.toLowerCase()];
  return token ? { 'X-Device-Token': token } : {};
}

/** Keeps the device token of a sign-in; it replaces the user's former one. */
export function keepDeviceToken(login, token) {
  if (!token) return;
  const { [login.toLowerCase()]: _, ...others } = deviceTokens();
  const kept = [...Object.entries(others), [login.toLowerCase(), token]].slice(-MAX_DEVICE_TOKENS);
  localStorage.setItem(DEVICE_TOKENS_KEY, JSON.stringify(Object.fromEntries(kept)));
}

const BROWSERS = [[/Edg\//, 'Edge'], [/Firefox\//, 'Firefox'], [/Chrome\//, 'Chrome'], [/Safari\//, 'Safari']];
const SYSTEMS = [[/Android/, 'Android'], [/iPhone|iPad/, 'iOS'], [/Windows/, 'Windows'], [/Mac OS/, 'macOS'], [/Linux/, 'Linux']];

/** Returns a name for this browser that users recognise in the list of their sessions. */
export function deviceName() {
  let name = localStorage.getItem(DEVICE_KEY);
  if (!name) {
    const find = (table) => table.find(([pattern]) => pattern.test(navigator.userAgent))?.[1];
    const suffix = crypto.getRandomValues(new Uint16Array(1))[0].toString(16).padStart(4, '0');
    name = `${find(BROWSERS) ?? 'Browser'} on ${find(SYSTEMS) ?? 'device'} (${suffix})`;
    localStorage.setItem(DEVICE_KEY, name);
  }
  return name;
}
