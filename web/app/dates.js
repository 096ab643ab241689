import { clock, date, day } from './format.js';
import { t } from './i18n.js';
import { preferences } from './preferences.js';

const two = (n) => String(n).padStart(2, '0');

/** A calendar date as the API writes it, or undefined if there is no such day. */
function real(year, month, dayOfMonth) {
  const at = new Date(Date.UTC(year, month - 1, dayOfMonth));
  const exists = year >= 1000 && year <= 9999 && at.getUTCMonth() === month - 1 && at.getUTCDate() === Number(dayOfMonth);
  return exists ? at.toISOString().slice(0, 10) : undefined;
}

const monthFirst = () => preferences.get().date_format.startsWith('MM');

/** The possible readings of a date without separators, the likeliest first. */
function readings(digits) {
  const yearFirst = [digits.slice(0, 4), digits.slice(4, 6), digits.slice(6)];
  const dayFirst = [digits.slice(4), digits.slice(2, 4), digits.slice(0, 2)];
  const monthThenDay = [digits.slice(4), digits.slice(0, 2), digits.slice(2, 4)];
  if (preferences.get().date_format.startsWith('YYYY')) return [yearFirst, dayFirst];
  return monthFirst() ? [monthThenDay, yearFirst] : [dayFirst, yearFirst];
}

/**
 * A typed date as the API writes it: 2026-01-31. It reads the order of the user's date format, days before months where points
 * separate them, dates that begin with the year, and eight digits. Returns undefined for anything else.
 * @param {string} typed
 */
export function parseDate(typed) {
  const text = typed.trim();
  if (/^\d{8}$/.test(text)) return readings(text).map((parts) => real(...parts)).find(Boolean);
  const [, first, separator, second, third] = /^(\d+)\s?([.\-/ ])\s?(\d+)\s?[.\-/ ]\s?(\d+)$/.exec(text) ?? [];
  if (!first || [first, second, third].some((part) => part.length > 2 && part.length !== 4)) return undefined;
  if (first.length === 4) return real(first, second, third);
  if (third.length !== 4) return undefined;
  return separator !== '.' && monthFirst() ? real(third, first, second) : real(third, second, first);
}

/** A typed day and time as the value of an input of both: 2026-01-31T08:00. A day alone begins at midnight. */
export function parseMoment(typed) {
  const [, before, hours = '0', minutes = '00'] = /^(.+?)(?:(?:,\s*|\s+|T)(\d{1,2})[:h](\d\d))?$/.exec(typed.trim()) ?? [];
  const found = before && parseDate(before);
  return found && hours < 24 && minutes < 60 ? `${found}T${two(Number(hours))}:${minutes}` : undefined;
}

/** Whether a value is a date, or a day and a time. */
export const isDate = (value, exact) => (exact ? /^\d{4}-\d\d-\d\dT\d\d:\d\d$/ : /^\d{4}-\d\d-\d\d$/).test(value);

/** A value in the user's date format; text that is no date stays. */
export function dateText(value, exact) {
  if (!isDate(value, exact)) return value;
  return exact ? `${day(value)}, ${clock(value)}` : date(value);
}

/** The date format in the letters of the language, such as TT.MM.JJJJ. */
export function dateLetters(exact) {
  const [dayLetter, monthLetter, yearLetter] = t('date.letters').split(' ');
  const letters = { DD: dayLetter.repeat(2), MM: monthLetter.repeat(2), YYYY: yearLetter.repeat(4) };
  const text = preferences.get().date_format.replace(/YYYY|MM|DD/g, (name) => letters[name]);
  return exact ? `${text}, ${t('date.clock')}` : text;
}

/** The day that is some days or months after another; the end of a shorter month takes its last day. */
export function dayAfter(value, days, months = 0) {
  const at = new Date(`${value}T00:00Z`);
  const was = at.getUTCDate();
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + months);
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  at.setUTCDate(Math.min(was, last) + days);
  return at.toISOString().slice(0, 10);
}

/** The local day that is some days after today, as YYYY-MM-DD. */
export function dayFromToday(days = 0) {
  const now = new Date();
  const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
