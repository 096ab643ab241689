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
  adopt(value);
}

/** The signed-in session {access_token, refresh_token, expires_at, user_id, login}, or null. */
export const session = store(read());

/** True after the session has expired and until the user signs in again; the screen stays, under a dialog. */
export const expired = store(false);

/**
 * The open request for a proof of identity, or null: {level, answer: (given: false|object) => void}. The level is 'fresh'
 * (any proof), 'aal2' (a second factor or a passkey), or 'request': then send takes a proof by one of methods, and the answer is
 * what it returns.
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
 * @returns {Promise<false|object>} the proof that the user gave
 */
export function reauthenticate(level) {
  if (level === 'aal2') proofRequest.set((was) => was && was.level !== 'request' ? { ...was, level } : was);
  return requestProof({ level });
}

/**
 * Asks for a proof that a request itself must carry. It waits for an open dialog, because its proof is for another request.
 * @param {string[]} methods of the user that the server accepts
 * @param {(proof: object) => Promise<object>} send sends the request with a proof
 * @returns {Promise<object|null>} what send returned; null: the user gave no proof
 */
export async function requestProven(methods, send) {
  while (proofRequest.get()) await requestProof({});
  const sent = await requestProof({ level: 'request', methods, send });
  if (sent instanceof Error) throw sent;
  return sent || null;
}

/**
 * Asks the user to set up a second factor, because the server requires one; concurrent requests share one dialog.
 * @returns {Promise<boolean>} whether the user did
 */
export const requireFactor = sharedRequest(factorRequest);

// The access tokens of the present user since their sign-in. The requests of one user are never sent as another, and answers to
// them are not shown to another.
const own = new Set([session.get()?.access_token]);

/** Whether a request with an access token belongs to the user who is signed in now. */
export const isOwn = (token) => own.has(token);

/** A request fails with it when its user has signed out meanwhile. It needs no message. */
export class SignedOut extends Error {
  constructor() {
    super('signed out');
    this.cancelled = true;
  }
}

/** Makes a session the present one; null ends it. */
function adopt(now) {
  if (now?.user_id !== session.get()?.user_id) {
    own.clear();
    reject();
  }
  if (now) own.add(now.access_token);
  session.set(now);
}

/** Reads the session that another tab has written. */
function synchronise() {
  const now = read();
  if (now?.access_token === session.get()?.access_token) return;
  adopt(now);
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

/** Closes the dialogs of a user who has signed out; the requests that wait for them fail. */
function reject() {
  proofRequest.get()?.answer(false);
  factorRequest.get()?.answer(false);
  expired.set(false);
  const all = waiting;
  waiting = [];
  for (const each of all) each.reject(new SignedOut());
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
 * user to sign in again; the promise waits for that, so that the pending request continues afterwards. It fails with SignedOut
 * if the token's user has signed out.
 * @param {string} stale the token to replace
 */
export async function renew(stale) {
  if (!isOwn(stale)) throw new SignedOut();
  refreshing ??= withLock('kontor.refresh', () => refresh(stale)).finally(() => (refreshing = null));
  await refreshing;
  synchronise();
  if (!isOwn(stale)) throw new SignedOut();
  const { access_token: now } = session.get();
  return now === stale ? waitForSignIn() : now;
}

/** Waits until the user has signed in again in the dialog, here or in another tab. Fails after a sign-out. */
function waitForSignIn() {
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    expired.set(true);
  });
}

/** Runs fn in one tab at a time. Browsers without locks (old ones, or plain http on another host) run it at once. */
function withLock(name, fn) {
  return navigator.locks ? navigator.locks.request(name, fn) : fn();
}

/** Replaces the tokens unless another tab has done so already. They stay when the server rejects them. */
async function refresh(stale) {
  synchronise();
  const now = session.get();
  if (now?.access_token !== stale || !now.refresh_token) return;
  const { response, at } = await exchangeToken(now.refresh_token, { 'X-Device-ID': deviceName() });
  if (response.status === 429 || response.status >= 500) throw new RefreshUnavailable(response);
  const tokens = response.ok && (await response.json());
  synchronise(); // The user may have signed out or in meanwhile, also in another tab.
  if (tokens && session.get()?.access_token === stale) saveTokens(tokens, undefined, at);
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
