import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import './browser.mjs';

const format = await import('../app/format.js');
const { preferences } = await import('../app/preferences.js');
const { switchLanguage } = await import('../app/i18n.js');

const defaults = preferences.get();
beforeEach(async () => {
  preferences.set(defaults);
  await switchLanguage('en');
});

test('a calendar date has no time zone', () => {
  for (const [pattern, want] of Object.entries({
    'DD.MM.YYYY': '31.01.2026', 'YYYY-MM-DD': '2026-01-31', 'DD/MM/YYYY': '31/01/2026', 'MM/DD/YYYY': '01/31/2026',
  })) {
    preferences.set((was) => ({ ...was, date_format: pattern }));
    assert.equal(format.date('2026-01-31'), want);
  }
  assert.equal(format.date(null), '');
  assert.equal(format.date('soon'), '');
});

test('numbers have the separators of the preference', () => {
  for (const [pattern, want] of Object.entries({
    "1'234.56": '−1’234’567.50', '1,234.56': '−1,234,567.50', '1.234,56': '−1.234.567,50', '1 234,56': '−1\u202f234\u202f567,50',
  })) {
    preferences.set((was) => ({ ...was, number_format: pattern }));
    assert.equal(format.number(-1234567.5, 2), want);
  }
  assert.equal(format.number(999), '999');
});

test('money shows its currency as chosen, and one that does not exist as it is', () => {
  assert.equal(format.money(1949.75, 'CHF'), 'CHF 1’949.75');
  preferences.set((was) => ({ ...was, currency_display: 'name' }));
  assert.equal(format.money(2, 'EUR'), '2.00 euros');
  assert.equal(format.money(2, '??'), '?? 2.00');
  assert.equal(format.money(null, 'CHF'), '');
});

test('references and phone numbers stand in groups', () => {
  assert.equal(format.grouped('210000000003139471430009017', 'QRR'), '21 00000 00003 13947 14300 09017');
  assert.equal(format.grouped('CH4431999123000889012', 'iban'), 'CH44 3199 9123 0008 8901 2');
  assert.equal(format.phone('+41791234567'), '+41 79 123 45 67');
  assert.equal(format.phone('+4915112345678'), '+4915112345678');
});

test('ago says how long ago in the words of the language', async () => {
  const before = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
  assert.equal(format.ago(before(120)), '2 minutes ago');
  assert.equal(format.ago(before(3 * 3600)), '3 hours ago');
  await switchLanguage('fr');
  assert.equal(format.ago(before(3 * 3600)), 'il y a 3 heures');
  assert.equal(format.ago(''), '');
  assert.match(format.remaining(before(-2.5 * 86400)), /2/);
});
