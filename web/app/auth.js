import { api, ApiError } from './api.js';
import { caller, loadCaller, meIfNew } from './access.js';
import { avatarUrl, loadAvatar } from './avatar.js';
import { runDeferred } from './deferred.js';
import { LANGUAGES, language, switchLanguage, t } from './i18n.js';
import { oneByOne } from './in_order.js';
import { startLiveUpdates, stopLiveUpdates } from './live_updates.js';
import { forgetPeople } from './people.js';
import { loadPreferences } from './preferences.js';
import { go } from './router.js';
import { clearSession, deviceHeaders, isOwn, keepDeviceToken, saveTokens, session } from './session.js';
import { forgetExchange, startWorker } from './token_refresh.js';
import { toast } from './ui/feedback.js';
import { mayDiscard } from './unsaved.js';

/** Keeps the tokens of an answer to a sign-in. An answer without tokens is the next step, which is returned. */
function finish(answer, login) {
  if (!answer.access_token) return { ...answer, login };
  keepDeviceToken(login ?? answer.user_id, answer.device_token);
  forgetExchange(); // It belongs to an earlier session.
  saveTokens(answer, login ?? null);
  return null;
}

const anonymously = (login) => ({ anonymous: true, headers: login ? deviceHeaders(login) : {} });

/**
 * Signs in with a credential and a password.
 * @returns {Promise<object|null>} the next step for a user with a second factor, which completeSignIn finishes
 */
export async function signIn(login, password) {
  return finish(await api.post('/authenticate', { user_id: login, password }, anonymously(login)), login);
}

/** Begins a sign-in with a passkey: {token, expires_in, options}. */
export const beginPasskeySignIn = () => api.post('/authenticate/passkey', {}, anonymously());

/**
 * Completes a sign-in.
 * @param {{token: string, login?: string}} step what signIn or beginPasskeySignIn returned
 * @param {{code?: string, recovery_code?: string, passkey?: object}} proof
 * @param {string} [userId] the only user who may sign in; the session of another one is ended at once
 */
export async function completeSignIn({ token, login }, proof, userId) {
  const answer = await api.post('/authenticate/factor', { token, ...proof }, anonymously(login));
  if (userId && answer.user_id !== userId) {
    await api.post('/v1/logout', undefined, { body: undefined, token: answer.access_token });
    throw new ApiError({ status: 400, message: t('passkey.other_user'), hint: t('passkey.other_user_hint') });
  }
  return finish(answer, login);
}

/** Exchanges the one-time code of the bank's sign-in provider for a session; returns the next step like signIn. */
export const signInWithCode = async (code) => finish(await api.post('/authenticate/oidc', { code }, anonymously()));

/** Signs in with the code of a link that "kontor open" has made; returns the next step like signIn. */
export const signInByLink = async (code) => finish(await api.post('/authenticate/local', { code }, anonymously()));

const LINK_KEY = 'kontor.link_code';

/** Keeps a code that links the bank's sign-in provider with the user who signs in next. */
export const keepLinkCode = (code) => sessionStorage.setItem(LINK_KEY, code);

/** Links the sign-in provider with the signed-in user if they have just come from it; returns whether it did. */
export async function linkProvider() {
  const code = sessionStorage.getItem(LINK_KEY);
  if (!code) return false;
  sessionStorage.removeItem(LINK_KEY);
  await api.post(`/v1/users/${session.get().user_id}/identities`, { code });
  return true;
}

/** Loads the ways to sign in: {password, passkey, oidc}. */
export const signInMethods = () => api.get('/authenticate/methods', undefined, { anonymous: true });

/**
 * Signs out on the server and in every tab, unless the user keeps what is unsaved; the tokens are deleted even when the server
 * cannot be reached.
 */
export async function signOut() {
  if (!(await mayDiscard())) return;
  await runDeferred();
  stopLiveUpdates();
  try {
    await api.post('/v1/logout', undefined, { body: undefined });
  } catch (error) {
    if (error.status !== 403) throw error;
    toast(t('signout.denied'), 'bad');
  } finally {
    leave();
  }
}

/** Ends the session in all tabs, without the server, and shows the sign-in screen. */
export function leave() {
  clearSession();
  forgetUser();
  go('/signin');
}

/** Deletes the data of a user whose session has ended, perhaps in another tab. */
export function forgetUser() {
  stopLiveUpdates();
  forgetPeople();
  avatarUrl.set(null);
  caller.set(null);
}

async function load() {
  const me = await meIfNew();
  await Promise.all([loadCaller(me), loadPreferences().catch(() => {})]);
  const chosen = caller.get().me.language;
  if (LANGUAGES[chosen] && chosen !== language.get() && !localStorage.getItem('kontor.language.chosen')) {
    await switchLanguage(chosen);
    await loadPreferences().catch(() => {}); // Their defaults depend on the language.
  }
  startLiveUpdates();
  startWorker(); // It must run before the first token expires.
  loadAvatar().catch(() => {});
}

let starting = null; // {token, done}

/** Loads what every screen needs about the signed-in user; concurrent calls for one user share one load. */
export function startSession() {
  if (!starting || !isOwn(starting.token)) {
    const mine = { token: session.get()?.access_token };
    mine.done = load().finally(() => {
      if (starting === mine) starting = null;
    });
    starting = mine;
  }
  return starting.done;
}

const saveLanguage = oneByOne();

/** Switches the language of the console and, for a signed-in user, of the messages that the bank sends. */
export async function chooseLanguage(tag) {
  localStorage.setItem('kontor.language.chosen', tag);
  await switchLanguage(tag);
  const me = caller.get()?.me;
  if (!session.get() || !me || language.get() !== tag || me.language === tag) return;
  caller.set((was) => ({ ...was, me: { ...was.me, language: tag } }));
  await saveLanguage(() => api.patch(`/v1/users/${me.id}`, { language: tag }));
  if (language.get() === tag) await loadPreferences().catch(() => {}); // Their defaults depend on the language.
}
