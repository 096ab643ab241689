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

test('a part that could not be loaded is loaded at the next attempt', async () => {
  const real = globalThis.fetch;
  globalThis.fetch = async () => new Response('', { status: 503 });
  await assert.rejects(switchLanguage('it'));
  globalThis.fetch = real;
  await switchLanguage('it');
  assert.equal(t('do.cancel'), 'Annulla');
});

// The last test: the parts do not exist, so that no other language could be loaded after it.
test('parts that are loaded at once do not replace each other', async () => {
  globalThis.fetch = async (address) => new Response(JSON.stringify({ [String(address).split('/').at(-2)]: 'text' }));
  await Promise.all([loadTexts('first'), loadTexts('second')]);
  assert.deepEqual([t('first'), t('second'), t('do.cancel')], ['text', 'text', 'Annulla']);
});
