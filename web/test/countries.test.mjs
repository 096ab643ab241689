import assert from 'node:assert/strict';
import { test } from 'node:test';
import './browser.mjs';

const { countries, country, countryName } = await import('../app/countries.js');
const { LANGUAGES, switchLanguage } = await import('../app/i18n.js');

test('Kosovo, stateless people and refugees have names in all languages', async () => {
  for (const language of Object.keys(LANGUAGES)) {
    await switchLanguage(language);
    for (const code of ['XKX', 'XK', 'XXA', 'XXB', 'XXC', 'XXX']) {
      assert.ok(countryName(code) && !countryName(code).includes('country.') && countryName(code) !== code, `${code} in ${language}`);
    }
  }
});

test('countries are offered with the codes that the server takes', async () => {
  await switchLanguage('en');
  assert.equal(countries().length, 250);
  assert.equal(countries(2).length, 250);
  assert.ok(countries().some(([code, name]) => code === 'XKX' && name === 'Kosovo'));
  assert.ok(countries(2).some(([code]) => code === 'XK'));
  assert.equal(countries(3, true).length, 254);
});

test('a code that is not offered is marked', async () => {
  await switchLanguage('en');
  assert.equal(country('CHE'), 'Switzerland');
  assert.equal(country('CH'), 'Switzerland');
  assert.equal(country('XQZ'), 'XQZ (not a known code)');
  assert.equal(countryName('XQZ'), undefined);
  assert.equal(country(null), '');
});
