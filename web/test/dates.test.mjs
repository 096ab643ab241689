import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import './browser.mjs';

const dates = await import('../app/dates.js');
const { preferences } = await import('../app/preferences.js');
const { switchLanguage } = await import('../app/i18n.js');

const format = (pattern) => preferences.set((was) => ({ ...was, date_format: pattern }));
beforeEach(() => switchLanguage('de'));

test('a date is read in the order of the format, and as ISO 8601', () => {
  for (const [pattern, typed, want] of [
    ['DD.MM.YYYY', '27.04.1948', '1948-04-27'], ['DD.MM.YYYY', ' 7.4.1948 ', '1948-04-07'], ['DD.MM.YYYY', '27. 4. 1948', '1948-04-27'],
    ['DD.MM.YYYY', '1948-04-27', '1948-04-27'], ['DD.MM.YYYY', '27041948', '1948-04-27'], ['DD.MM.YYYY', '19480427', '1948-04-27'],
    ['DD/MM/YYYY', '03/04/1948', '1948-04-03'], ['MM/DD/YYYY', '03/04/1948', '1948-03-04'], ['MM/DD/YYYY', '27.04.1948', '1948-04-27'],
    ['MM/DD/YYYY', '04271948', '1948-04-27'], ['YYYY-MM-DD', '19480427', '1948-04-27'], ['YYYY-MM-DD', '27041948', '1948-04-27'],
    ['YYYY-MM-DD', '27.04.1948', '1948-04-27'], ['DD.MM.YYYY', '29.02.2028', '2028-02-29'],
  ]) {
    format(pattern);
    assert.equal(dates.parseDate(typed), want, `${typed} as ${pattern}`);
  }
});

test('what is no date is none', () => {
  format('DD.MM.YYYY');
  for (const typed of ['', 'soon', '31.02.2026', '29.02.2027', '27.04.48', '0.1.2026', '1.13.2026', '1948', '27.04.', '1948-4-271',
    '99999999', '27.04.0948', '27.04.1948 8:00', '1.2.3.2026', '٢٧.٠٤.١٩٤٨']) {
    assert.equal(dates.parseDate(typed), undefined, typed);
  }
});

test('a moment has a time, or begins at midnight', () => {
  format('DD.MM.YYYY');
  for (const [typed, want] of [
    ['27.04.2026, 08:15', '2026-04-27T08:15'], ['27.04.2026 8:15', '2026-04-27T08:15'], ['2026-04-27T23:59', '2026-04-27T23:59'],
    ['27.04.2026', '2026-04-27T00:00'], ['27.04.2026 24:00', undefined], ['27.04.2026 8:75', undefined], ['8:15', undefined],
  ]) assert.equal(dates.parseMoment(typed), want, typed);
  assert.equal(dates.dateText('2026-04-27T08:15', true), '27.04.2026, 08:15');
  assert.equal(dates.dateText('soon'), 'soon');
});

test('the placeholder has the letters of the language', async () => {
  format('DD.MM.YYYY');
  for (const [tag, want] of Object.entries({ de: 'TT.MM.JJJJ', fr: 'JJ.MM.AAAA', it: 'GG.MM.AAAA', en: 'DD.MM.YYYY' })) {
    await switchLanguage(tag);
    assert.equal(dates.dateLetters(), want);
  }
  format('YYYY-MM-DD');
  assert.equal(dates.dateLetters(true), 'YYYY-MM-DD, HH:MM');
});

test('a step of a month stays in it', () => {
  assert.equal(dates.dayAfter('2026-01-31', 0, 1), '2026-02-28');
  assert.equal(dates.dayAfter('2028-02-29', 0, 12), '2029-02-28');
  assert.equal(dates.dayAfter('2026-12-31', 1), '2027-01-01');
  assert.equal(dates.dayAfter('2026-03-01', -1), '2026-02-28');
});
