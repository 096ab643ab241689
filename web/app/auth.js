import { api } from './api.js';
import { caller, loadCaller } from './access.js';
import { forgetPeople, loadPicture } from './people.js';
import { LANGUAGES, language, useLanguageTexts } from './i18n.js';
import { loadPrefs } from './prefs.js';
import { startLive, stopLive } from './live.js';
import { startWorker } from './refresh.js';
import { adopt, deviceHeaders, forget, keepDeviceToken, session } from './session.js';
import { go } from './router.js';

/** Signs in with a credential and a password. */
export async function signIn(login, password) {
  const pair = await api.post('/authenticate', { user_id: login, password }, { open: true, headers: deviceHeaders(login) });
  keepDeviceToken(login, pair.device_token);
  adopt(pair, login);
}

/** Signs out on the server and in every tab; the tokens are forgotten even when the server cannot be reached. */
export async function signOut() {
  stopLive();
  try {
    await api.post('/v1/logout', undefined, { body: undefined });
  } finally {
    leave();
  }
}

/** Forgets who was signed in and shows the door. */
export function leave() {
  stopLive();
  forget();
  forgetPeople();
  caller.set(null);
  go('/signin');
}

let entering = null;

/** Loads what every screen needs about the signed-in user; many calls share one load. */
export function enter() {
  entering ??= Promise.all([loadCaller(), loadPrefs().catch(() => {})])
    .then(async () => {
      const chosen = caller.get().me.language;
      if (LANGUAGES[chosen] && !localStorage.getItem('kontor.language.chosen')) await useLanguageTexts(chosen);
      startLive();
      startWorker(); // Long before the first hour is over.
      loadPicture().catch(() => {});
    })
    .finally(() => (entering = null));
  return entering;
}

/** Switches the language here and, for somebody who is signed in, for what the bank sends him. */
export async function chooseLanguage(tag) {
  localStorage.setItem('kontor.language.chosen', tag);
  await useLanguageTexts(tag);
  const me = caller.get()?.me;
  if (session.get() && me && me.language !== language.get()) {
    caller.set((was) => ({ ...was, me: { ...was.me, language: tag } }));
    await api.patch(`/v1/users/${me.id}`, { language: tag });
  }
}
