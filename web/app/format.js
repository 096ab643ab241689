import { preferences } from './preferences.js';
import { language, t } from './i18n.js';

/** The language with the region whose dates it uses: of Switzerland, and in English the day before the month. */
export const locale = () => (language.get() === 'en' ? 'en-GB' : `${language.get()}-CH`);

const two = (n) => String(n).padStart(2, '0');

function byPattern(year, month, day) {
  const parts = { YYYY: String(year), MM: two(month), DD: two(day) };
  return preferences.get().date_format.replace(/YYYY|MM|DD/g, (name) => parts[name]);
}

/** A calendar date (2026-01-31) in the user's date format. It has no time zone, so none is applied. */
export function date(value) {
  const found = /^(\d{4})-(\d\d)-(\d\d)/.exec(value ?? '');
  return found ? byPattern(found[1], found[2], found[3]) : '';
}

/** The local day of a timestamp. */
export function day(value) {
  if (!value) return '';
  const at = new Date(value);
  return byPattern(at.getFullYear(), at.getMonth() + 1, at.getDate());
}

/** The local time of a timestamp, to the minute. */
export function clock(value) {
  if (!value) return '';
  const at = new Date(value);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The local day and time of a timestamp. */
export const dateTime = (value) => (value ? `${day(value)}, ${clock(value)}` : '');

/** The local day and time of a timestamp to the second, with the time zone. */
export function exactTime(value) {
  if (!value) return '';
  const at = new Date(value);
  const parts = new Intl.DateTimeFormat(locale(), { timeZoneName: 'short' }).formatToParts(at);
  return `${dateTime(value)}:${two(at.getSeconds())} ${parts.find(({ type }) => type === 'timeZoneName').value}`;
}

const STEPS = [['minute', 60], ['hour', 3600], ['day', 86400]];

/** The time since a timestamp in words; after a week, the day. */
export function ago(value, style = 'long') {
  if (!value) return '';
  const seconds = (Date.now() - new Date(value).getTime()) / 1000;
  if (seconds < 45) return t('time.now');
  if (seconds > 7 * 86400) return day(value);
  const [unit, length] = STEPS.findLast(([, size]) => seconds >= size) ?? STEPS[0];
  return new Intl.RelativeTimeFormat(language.get(), { numeric: 'auto', style }).format(-Math.max(1, Math.round(seconds / length)), unit);
}

/** The time until a timestamp in words, rounded down: in 2 days. */
export function remaining(value) {
  const seconds = Math.max(0, (new Date(value).getTime() - Date.now()) / 1000);
  const [unit, length] = STEPS.findLast(([, size]) => seconds >= size) ?? STEPS[0];
  return new Intl.RelativeTimeFormat(language.get()).format(Math.floor(seconds / length), unit);
}

/** A timestamp in few letters: the time for today, the weekday within a week, else the day. */
export function shortTime(value) {
  if (day(value) === day(new Date().toISOString())) return clock(value);
  const old = Date.now() - new Date(value).getTime() > 6 * 86_400_000;
  return old ? day(value) : new Date(value).toLocaleDateString(locale(), { weekday: 'short' });
}

/** A day in words: today, yesterday, or the weekday with its date; with the year when it is not the present one. */
export function dayName(value) {
  const at = new Date(value);
  const daysAgo = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(value).setHours(0, 0, 0, 0)) / 86_400_000);
  if (daysAgo === 0 || daysAgo === 1) {
    const relative = new Intl.RelativeTimeFormat(language.get(), { numeric: 'auto' });
    return capital(relative.format(-daysAgo, 'day'));
  }
  return at.getFullYear() === new Date().getFullYear() ? capital(inWords(at)) : longDay(at);
}

/** A day in words with its year. */
export const longDay = (at) => capital(inWords(at, { year: 'numeric' }));

const inWords = (at, more) => at.toLocaleDateString(locale(), { weekday: 'long', day: 'numeric', month: 'long', ...more });

const capital = (text) => text.charAt(0).toLocaleUpperCase(language.get()) + text.slice(1);

const inUTC = (value, options) => new Date(`${value.slice(0, 10)}T00:00Z`).toLocaleDateString(locale(), { ...options, timeZone: 'UTC' });

/** A calendar date in words, without its weekday. */
export const dayInWords = (value) => inUTC(value, { day: 'numeric', month: 'long', year: 'numeric' });

/** The month of a calendar date in words. */
export const monthName = (value) => capital(inUTC(value, { month: 'long', year: 'numeric' }));

const MONDAY = 5; // of January 2026

/** The weekdays from Monday on: [short, long]. */
export const weekdays = () => Array.from({ length: 7 }, (_, i) => `2026-01-${two(MONDAY + i)}`)
  .map((value) => [inUTC(value, { weekday: 'short' }), inUTC(value, { weekday: 'long' })]);

/** A number with the user's separators and a fixed number of decimals. */
export function number(value, decimals = 0) {
  const [, group, point] = /^1(.)234(.)56$/.exec(preferences.get().number_format) ?? [null, "'", '.'];
  const [whole, rest] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group === "'" ? '’' : group === ' ' ? '\u202f' : group);
  return (value < 0 ? '−' : '') + grouped + (rest ? point + rest : '');
}

/** An amount of money; the user's preference decides how its currency is shown. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return '';
  const shown = number(amount, 2);
  const how = preferences.get().currency_display;
  try {
    const currencyDisplay = how === 'symbol' ? 'narrowSymbol' : how;
    const format = new Intl.NumberFormat(language.get(), { style: 'currency', currency, currencyDisplay });
    const parts = format.formatToParts(amount);
    const name = parts.find((part) => part.type === 'currency').value;
    return how === 'name' ? `${shown} ${name}` : `${name} ${shown}`;
  } catch {
    return `${currency ?? ''} ${shown}`.trim(); // An invoice may name an unknown currency; it is shown as it is.
  }
}

/** A share in percent, rounded. */
export const percent = (part, whole) => (whole > 0 ? Math.round((100 * part) / whole) : 0);

/** An IBAN or reference in the groups of the printed form. */
export function grouped(value, type) {
  if (!value) return '';
  if (type === 'QRR' || /^\d{27}$/.test(value)) return `${value.slice(0, 2)} ${value.slice(2).replace(/(.{5})(?=.)/g, '$1 ')}`;
  return value.replace(/(.{4})(?=.)/g, '$1 ');
}

/** A Swiss telephone number in its usual groups; other numbers stay as they are. */
export function phone(value) {
  const swiss = /^\+41(\d{2})(\d{3})(\d{2})(\d{2})$/.exec(value ?? '');
  return swiss ? `+41 ${swiss.slice(1).join(' ')}` : value ?? '';
}
