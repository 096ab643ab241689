import { html, useState } from '../lib.js';
import { t, term } from '../i18n.js';
import { ago, dateTime, exactTime, number, percent } from '../format.js';
import { usePreferences } from '../preferences.js';
import { initials } from '../people.js';
import { Icon } from './icon.js';

const STATES = {
  good: ['verified', 'active', 'completed', 'sent', 'healthy', 'validated', 'accepted'],
  wait: ['pending', 'queued', 'assigned'],
  info: ['in_review', 'sending'],
  doing: ['in_progress'],
  warn: ['action_required', 'expired', 'retrying', 'unvalidated'],
  bad: ['rejected', 'disabled', 'dead', 'declined'],
};
const TONES = Object.fromEntries(Object.entries(STATES).flatMap(([tone, states]) => states.map((state) => [state, tone])));

// The shapes of the states of records: each differs without its colour, too.
const SHAPES = {
  not_started: 'state_none', pending: 'state_waits', in_review: 'state_looks', in_progress: 'state_half', action_required: 'warning',
  verified: 'do_approve', completed: 'do_approve', expired: 'clock', rejected: 'state_not', declined: 'state_not', canceled: 'state_ended',
};
const SHAPED = new Set(['kyc_status', 'task_status']);

/** A state as a word with a colour, and a shape where it is the state of a record; the word alone carries the meaning. */
export const Badge = ({ group, value, tone }) => html`
  <span class=${`badge ${tone ?? TONES[value] ?? 'none'}`}>${SHAPED.has(group) && SHAPES[value] && html`
    <${Icon} name=${SHAPES[value]} size=${12} />`}${group ? term(group, value) : value}</span>`;

/** The sign of a way to sign in that was added in the last 24 hours; nothing for the others. */
export const OnTrial = ({ of }) => (of.trusted_from && new Date(of.trusted_from) > new Date()
  ? html`<span class="badge warn" title=${t('trial.text', { time: dateTime(of.trusted_from) })}>${t('trial.new')}</span>` : null);

/** The sign for a missing value. */
export const Dash = () => html`<span class="none">–</span>`;

/** A timestamp: the time since then, with the exact time as a tooltip; exact shows that instead, seconds shows it to the second. */
export function When({ at, exact, seconds }) {
  usePreferences();
  if (!at) return html`<${Dash} />`;
  return html`<time dateTime=${at} title=${dateTime(at)}>${seconds ? exactTime(at) : exact ? dateTime(at) : ago(at)}</time>`;
}

/** Names and values, in columns or as a list. Rows are [name, value]; a missing value shows a dash. */
export const Facts = ({ rows, list }) => html`<dl class=${list ? 'facts list' : 'facts'}>
  ${rows.filter(Boolean).map(([name, value]) => html`
    <div key=${name}><dt>${name}</dt><dd>${value || value === 0 ? value : html`<${Dash} />`}</dd></div>`)}
</dl>`;

/** A share as a bar and as text. */
export function Progress({ part, whole, label }) {
  const share = percent(part, whole);
  return html`<div class="progress">
    <div class="track" role="progressbar" aria-label=${label} aria-valuenow=${share} aria-valuemin="0" aria-valuemax="100">
      <span style=${{ width: `${share}%` }}></span>
    </div>
    <span class="num">${number(share)} %</span>
  </div>`;
}

/** A button that copies a text and confirms it. */
export function Copy({ text, label }) {
  const [done, setDone] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  }
  return html`<button type="button" class="bare copy" onClick=${copy} aria-label=${label} title=${label}>
    <${Icon} name=${done ? 'check' : 'copy'} size=${15} /><span class="sr" aria-live="polite">${done ? t('copied') : ''}</span>
  </button>`;
}

/** The id of a record, with a button that copies it. */
export const RecordId = ({ id }) => html`<span class="code">${id}</span><${Copy} text=${id} label=${t('copy.id')} />`;

/** A person's picture, or their initials when there is none. */
export const Avatar = ({ name, url, size = 'm' }) => html`<span class=${`avatar ${size}`} aria-hidden="true">
  ${url ? html`<img src=${url} alt="" />` : initials(name)}
</span>`;
