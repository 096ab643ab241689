import { prefs } from './prefs.js';
import { language, t } from './i18n.js';

const two = (n) => String(n).padStart(2, '0');

function byPattern(year, month, day) {
  const parts = { YYYY: String(year), MM: two(month), DD: two(day) };
  return prefs.get().date_format.replace(/YYYY|MM|DD/g, (name) => parts[name]);
}

/** A calendar date (2026-01-31) as the user likes to read it. It has no time zone, so none is applied. */
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

const STEPS = [['minute', 60], ['hour', 3600], ['day', 86400]];

/** How long ago a timestamp lies, in words; after a week the day itself. */
export function ago(value, style = 'long') {
  if (!value) return '';
  const seconds = (Date.now() - new Date(value).getTime()) / 1000;
  if (seconds < 45) return t('time.now');
  if (seconds > 7 * 86400) return day(value);
  const [unit, length] = STEPS.findLast(([, size]) => seconds >= size) ?? STEPS[0];
  return new Intl.RelativeTimeFormat(language.get(), { numeric: 'auto', style }).format(-Math.max(1, Math.round(seconds / length)), unit);
}

/** A moment in few letters: the time for today, the weekday within a week, else the day. */
export function moment(value) {
  if (day(value) === day(new Date().toISOString())) return clock(value);
  const old = Date.now() - new Date(value).getTime() > 6 * 86_400_000;
  return old ? day(value) : new Date(value).toLocaleDateString(language.get(), { weekday: 'short' });
}

/** A day in words: today, yesterday, the weekday with its date, and the year where it is another one. */
export function dayName(value) {
  const at = new Date(value);
  const away = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(value).setHours(0, 0, 0, 0)) / 86_400_000);
  if (away === 0 || away === 1) return capital(new Intl.RelativeTimeFormat(language.get(), { numeric: 'auto' }).format(-away, 'day'));
  return capital(at.toLocaleDateString(language.get(), { weekday: 'long', day: 'numeric', month: 'long', ...(at.getFullYear() !== new Date().getFullYear() && { year: 'numeric' }) }));
}

/** A day with everything that belongs to it. */
export const longDay = (at) => capital(at.toLocaleDateString(language.get(), { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }));

const capital = (text) => text.charAt(0).toLocaleUpperCase(language.get()) + text.slice(1);

/** A number with the user's separators; decimals fixes the digits behind the point. */
export function number(value, decimals = 0) {
  const [, group, point] = /^1(.)234(.)56$/.exec(prefs.get().number_format) ?? [null, "'", '.'];
  const [whole, rest] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group === "'" ? '’' : group === ' ' ? '\u202f' : group);
  return (value < 0 ? '−' : '') + grouped + (rest ? point + rest : '');
}

/** An amount of money with its currency shown as the user chose. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return '';
  const shown = number(amount, 2);
  const how = prefs.get().currency_display;
  try {
    const parts = new Intl.NumberFormat(language.get(), { style: 'currency', currency, currencyDisplay: how === 'symbol' ? 'narrowSymbol' : how }).formatToParts(amount);
    const name = parts.find((part) => part.type === 'currency').value;
    return how === 'name' ? `${shown} ${name}` : `${name} ${shown}`;
  } catch {
    return `${currency ?? ''} ${shown}`.trim(); // A bill may carry a currency that does not exist; it is shown as it is.
  }
}

/** A share as whole percent. */
export const percent = (part, whole) => (whole > 0 ? Math.round((100 * part) / whole) : 0);

/** An IBAN or reference in the groups that are printed on paper. */
export function grouped(value, type) {
  if (!value) return '';
  if (type === 'QRR' || /^\d{27}$/.test(value)) return `${value.slice(0, 2)} ${value.slice(2).replace(/(.{5})(?=.)/g, '$1 ')}`;
  return value.replace(/(.{4})(?=.)/g, '$1 ');
}

/** A telephone number in the groups that one reads; those of other countries only after the code of the country. */
export function phone(value) {
  const swiss = /^\+41(\d{2})(\d{3})(\d{2})(\d{2})$/.exec(value ?? '');
  return swiss ? `+41 ${swiss.slice(1).join(' ')}` : value ?? '';
}
