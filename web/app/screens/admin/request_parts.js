import { html } from '../../lib.js';
import { day, locale } from '../../format.js';
import { language, t } from '../../i18n.js';
import { usePreferences } from '../../preferences.js';
import { Badge } from '../../ui/display.js';
import { Person } from '../../ui/person.js';

/** The kinds of callers, the classes of statuses and the methods, for filters. */
export const CALLERS = ['person', 'service', 'api_key', 'anonymous'];
export const CLASSES = ['2xx', '3xx', '4xx', '5xx'];
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

const TONES = { '2xx': 'good', '3xx': 'info', '4xx': 'warn', '5xx': 'bad' };

export const Status = ({ request }) => html`<${Badge} value=${request.status} tone=${TONES[request.class]} />`;

const PRECISE = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hour12: false };

/** The local time of a request to the millisecond; exact: with its day. */
export function Moment({ at, exact }) {
  usePreferences();
  const time = new Date(at).toLocaleTimeString(locale(), PRECISE);
  const full = `${day(at)}, ${time}`;
  return html`<time class="moment" dateTime=${at} title=${full}>${exact ? full : time}</time>`;
}

/** Microseconds as milliseconds. */
export const duration = (micros) => `${(micros / 1000).toLocaleString(language.get(), { maximumFractionDigits: 1 })} ms`;

const SCREENS = { person: '/admin/users/', service: '/admin/services/' };

/** The caller of a request; link: as a link to its screen. */
export function Caller({ request: { caller_kind: kind, caller: id }, link }) {
  if (!SCREENS[kind]) return html`${t(`requests.caller.${kind}`)}${id && html` <span class="code">${id}</span>`}`;
  const person = html`<${Person} id=${id} signIn />`;
  return link ? html`<a href=${SCREENS[kind] + id}>${person}</a>` : person;
}
