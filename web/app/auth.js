import { api } from './api.js';
import { caller, loadCaller } from './access.js';
import { avatarUrl, loadAvatar } from './avatar.js';
import { LANGUAGES, language, switchLanguage } from './i18n.js';
import { startLiveUpdates, stopLiveUpdates } from './live_updates.js';
import { forgetPeople } from './people.js';
import { loadPreferences } from './preferences.js';
import { go } from './router.js';
import { clearSession, deviceHeaders, keepDeviceToken, saveTokens, session } from './session.js';
import { startWorker } from './token_refresh.js';

/** Signs in with a credential and a password. */
export async function signIn(login, password) {
  const body = { user_id: login, password };
  const tokens = await api.post('/authenticate', body, { anonymous: true, headers: deviceHeaders(login) });
  keepDeviceToken(login, tokens.device_token);
  saveTokens(tokens, login);
}

/** Signs out on the server and in every tab; the tokens are deleted even when the server cannot be reached. */
export async function signOut() {
  stopLiveUpdates();
  try {
    await api.post('/v1/logout', undefined, { body: undefined });
  } finally {
    leave();
  }
}

/** Deletes everything that is known about the signed-in user and shows the sign-in screen. */
export function leave() {
  stopLiveUpdates();
  clearSession();
  forgetPeople();
  avatarUrl.set(null);
  caller.set(null);
  go('/signin');
}

let starting = null;

/** Loads what every screen needs about the signed-in user; concurrent calls share one load. */
export function startSession() {
  starting ??= Promise.all([loadCaller(), loadPreferences().catch(() => {})])
    .then(async () => {
      const chosen = caller.get().me.language;
      if (LANGUAGES[chosen] && !localStorage.getItem('kontor.language.chosen')) await switchLanguage(chosen);
      startLiveUpdates();
      startWorker(); // It must run before the first token expires.
      loadAvatar().catch(() => {});
    })
    .finally(() => (starting = null));
  return starting;
}

/** Switches the language of the console and, for a signed-in user, of the messages that the bank sends. */
export async function chooseLanguage(tag) {
  localStorage.setItem('kontor.language.chosen', tag);
  await switchLanguage(tag);
  const me = caller.get()?.me;
  if (session.get() && me && me.language !== language.get()) {
    caller.set((was) => ({ ...was, me: { ...was.me, language: tag } }));
    await api.patch(`/v1/users/${me.id}`, { language: tag });
  }
}
