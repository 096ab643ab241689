import { html } from '../lib.js';
import { dateTime, remaining } from '../format.js';
import { t } from '../i18n.js';

/** When a right begins and ends by itself, with the remaining time. Shows nothing for a right without either. */
export function Validity({ term }) {
  if (!term) return null;
  const begins = term.starts_at && new Date(term.starts_at) > new Date();
  const text = [
    begins && t('grants.begins', { at: dateTime(term.starts_at), left: remaining(term.starts_at) }),
    term.expires_at && t('grants.ends', { at: dateTime(term.expires_at), left: remaining(term.expires_at) }),
  ].filter(Boolean).join(' ');
  return text && html`<span class="fine">${text}</span>`;
}

/** The value of an input of a day and time, in local time, as a timestamp; null for an empty one. */
export const timestamp = (local) => (local ? new Date(local).toISOString() : null);

/** A timestamp as the value of an input of a day and time, in local time. */
export function localInput(value) {
  if (!value) return '';
  const at = new Date(value);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
