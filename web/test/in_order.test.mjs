import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerWith, json, requests, signedIn } from './browser.mjs';

signedIn();
const { caller } = await import('../app/access.js');
const { chooseLanguage } = await import('../app/auth.js');
const { language, switchLanguage } = await import('../app/i18n.js');
const { changePreferences, loadPreferences, preferences } = await import('../app/preferences.js');
const { clearSession, saveTokens, SignedOut } = await import('../app/session.js');
await switchLanguage('en');

/** An answer that arrives when release is called. */
function late() {
  const held = {};
  const answer = new Promise((resolve) => (held.release = resolve));
  held.answer = () => answer;
  return held;
}

/** Lets everything that is under way reach its next wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

const sent = () => requests.map(({ init }) => init.body && JSON.parse(init.body));
const DEFAULTS = preferences.get();

beforeEach(() => preferences.set(DEFAULTS));

test('the language chosen last wins, whichever texts arrive first', async () => {
  const { fetch } = globalThis;
  const held = late();
  globalThis.fetch = async (url, init) => {
    if (String(url).endsWith('/i18n/it.json')) await held.answer();
    return fetch(url, init);
  };
  const italian = switchLanguage('it');
  await switchLanguage('fr');
  held.release();
  await italian;
  globalThis.fetch = fetch;
  assert.equal(language.get(), 'fr');
  assert.equal(localStorage.getItem('kontor.language'), 'fr');
});

test('the server gets the language chosen last at last', async () => {
  caller.set({ me: { id: 'u1', language: 'fr' }, allowed: new Set() });
  const held = late();
  answerWith(held.answer, json({}), json({}));
  const both = [chooseLanguage('de')];
  await settle();
  both.push(chooseLanguage('en'));
  await settle();
  assert.deepEqual(sent(), [{ language: 'de' }]);
  held.release(json({}));
  await Promise.all(both);
  assert.deepEqual(sent(), [{ language: 'de' }, { language: 'en' }, undefined]); // The last request reads the preferences.
});

test('a preference that is changed before the others are loaded leaves those as they are', async () => {
  const held = late();
  answerWith(held.answer, json({}));
  const loaded = loadPreferences();
  await settle();
  await changePreferences({ theme: 'dark' });
  assert.deepEqual(sent()[1], { theme: 'dark' });
  held.release(json({ ...DEFAULTS, theme: 'light', date_format: 'YYYY-MM-DD' }));
  await loaded;
  assert.deepEqual(preferences.get(), { ...DEFAULTS, theme: 'dark', date_format: 'YYYY-MM-DD' });
});

test('a change that fails late reverts neither another preference nor a later choice', async () => {
  const held = late();
  answerWith(held.answer, json({}), json({}));
  const failing = changePreferences({ theme: 'dark' }).catch((error) => error);
  const later = [changePreferences({ theme: 'light' }), changePreferences({ date_format: 'YYYY-MM-DD' })];
  held.release(json({ message: 'not now' }, 503));
  assert.equal((await failing).status, 503);
  await Promise.all(later);
  assert.deepEqual(preferences.get(), { ...DEFAULTS, theme: 'light', date_format: 'YYYY-MM-DD' });
  assert.deepEqual(sent(), [{ theme: 'dark' }, { theme: 'light' }, { date_format: 'YYYY-MM-DD' }]);
});

test('a change that waits for another one is not made for the next user', async () => {
  const held = late();
  answerWith(held.answer, json({}));
  const both = [{ theme: 'dark' }, { date_format: 'YYYY-MM-DD' }].map((change) => changePreferences(change).catch((error) => error));
  await settle();
  clearSession();
  saveTokens({ access_token: 'second', expires_in: 3600, user_id: 'u2' }, 'beat@example.ch');
  held.release(json({}));
  for (const error of await Promise.all(both)) assert.ok(error instanceof SignedOut);
  assert.equal(requests.length, 1);
});
