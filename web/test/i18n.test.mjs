import assert from 'node:assert/strict';
import { test } from 'node:test';
import './browser.mjs';

const { language, loadTexts, switchLanguage, t } = await import('../app/i18n.js');

test('a part of the texts is loaded when it is needed, and follows the language', async () => {
  await switchLanguage('en');
  assert.equal(t('codes.kept'), 'codes.kept');
  await loadTexts('security');
  assert.equal(t('codes.kept'), 'I have kept them');
  await switchLanguage('de');
  assert.equal(t('codes.kept'), 'Ich habe sie aufbewahrt');
  assert.equal(t('do.cancel'), 'Abbrechen');
});

test('a part that is added during a switch of the language is there after it', async () => {
  const switched = switchLanguage('fr');
  const added = loadTexts('invoices'); // It loads the texts of the former language.
  await Promise.all([switched, added]);
  assert.equal(language.get(), 'fr');
  assert.notEqual(t('invoices.choose'), 'invoices.choose');
});

test('parts that are loaded at once do not replace each other', async () => {
  await switchLanguage('en');
  const real = globalThis.fetch;
  const arrivals = [];
  globalThis.fetch = (...request) => new Promise((arrive) => arrivals.push(() => arrive(real(...request))));
  const both = [loadTexts('privacy'), loadTexts('security'), switchLanguage('it')];
  for (let i = 0; i < 20; i++) {
    for (const arrive of arrivals.splice(0).reverse()) arrive();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(both);
  globalThis.fetch = real;
  for (const tag of ['en', 'it']) {
    await switchLanguage(tag);
    for (const key of ['privacy.title', 'codes.kept', 'do.cancel']) assert.notEqual(t(key), key, `${tag}: ${key}`);
  }
});

test('a part that could not be loaded is loaded at the next attempt', async () => {
  const real = globalThis.fetch;
  globalThis.fetch = async () => new Response('', { status: 503 });
  await assert.rejects(switchLanguage('it'));
  globalThis.fetch = real;
  await switchLanguage('it');
  assert.equal(t('do.cancel'), 'Annulla');
});
