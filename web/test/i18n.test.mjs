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
