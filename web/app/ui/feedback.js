import { html, useEffect, useRef, useState } from '../lib.js';
import { advice } from '../api.js';
import { t, term } from '../i18n.js';
import { store, useStore } from '../store.js';
import { useCountdown } from './countdown.js';
import { Icon } from './icon.js';
import { RequestId } from './request_id.js';

/** The time to wait, counted down. aria-live is off, so that screen readers do not announce every second. */
function Wait({ seconds }) {
  const [left] = useCountdown(seconds);
  return html`<p aria-live="off">${left > 0 ? t('advice.wait', { n: left }) : t('advice.now')}</p>`;
}

let nextWait = 1;
const waits = new WeakMap(); // error → key, so that each error counts down on its own

function keyOf(error) {
  if (!waits.has(error)) waits.set(error, nextWait++);
  return waits.get(error);
}

/** The name of a member in the words of the forms: "Date of birth" for documents.0.date_of_birth. */
function memberName(name) {
  const last = name.split(/[.[\]]+/).findLast((part) => part && !/^\d+$/.test(part)) ?? name;
  const text = term('field', last);
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

/** The errors of members that no field shows, as sentences with the words of the forms. */
const memberErrors = (error) => Object.entries(error.unplaced ?? error.fields ?? {}).map(([name, text]) => `${memberName(name)}: ${text}`);

/**
 * An error: the server's message, advice, and a button to try again.
 * @param {{error: any, retry?: () => void, hint?: string, action?: any}} props
 *   hint: advice that is more specific than advice(); action: a button instead of the one that tries again
 */
export function ErrorBox({ error, retry, hint = error?.hint, action }) {
  if (!error) return null;
  const members = memberErrors(error);
  const missing = error.status === 403 && error.details?.reason === 'endpoint' && error.details.endpoint;
  const allowed = (error.details?.allowed ?? []).map((state) => term('kyc_status', state));
  return html`<div class="notice bad" role="alert">
    <${Icon} name="warning" />
    <div>
      <strong>${error.message}</strong>
      ${error.retryAfter && !hint
        ? html`<${Wait} key=${keyOf(error)} seconds=${error.retryAfter} />`
        : html`<p>${hint ?? advice(error)}</p>`}
      ${missing && html`<p class="fine">${t('advice.missing_endpoint')} <span class="code">${missing}</span></p>`}
      ${members.length > 0 && html`<ul>${members.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`}
      ${allowed.length > 0 && html`<p>${t('advice.allowed', { what: allowed.join(', ') })}</p>`}
      ${error.code && html`<p class="fine">${error.code}${error.requestId && html` · <${RequestId} id=${error.requestId} />`}</p>`}
    </div>
    ${action ?? (retry && html`<button class="quiet" onClick=${retry}>${t('do.retry')}</button>`)}
  </div>`;
}

/** A message within a screen; its tone is 'info', 'good', 'warn' or 'bad'. */
export function Notice({ tone = 'info', title, children, action }) {
  const icon = { good: 'check', info: 'bell' }[tone] ?? 'warning';
  return html`<div class=${`notice ${tone}`} role=${tone === 'bad' ? 'alert' : 'status'}>
    <${Icon} name=${icon} />
    <div>${title && html`<strong>${title}</strong>`}<div>${children}</div></div>
    ${action}
  </div>`;
}

/** The message of an empty list, with what the user can do. */
export const Empty = ({ icon, title, children, action }) => html`<div class="empty">
  ${icon && html`<span class="empty-icon"><${Icon} name=${icon} size=${26} /></span>`}
  <p class="empty-title">${title}</p>
  ${children && html`<p>${children}</p>`}
  ${action}
</div>`;

/** Grey lines in place of data that is still loading. */
export function Skeleton({ lines = 4, height }) {
  const style = height ? { height: `${height}px` } : undefined;
  return html`<div class="skeleton" aria-busy="true" aria-label=${t('loading')} role="status">
    ${Array.from({ length: lines }, (_, i) => html`<span key=${i} class=${`bar w${(i * 7) % 4}`} style=${style}></span>`)}
  </div>`;
}

/**
 * Shows the state of a load: a skeleton, the error above the former data, or the data.
 * @param {{load: ReturnType<import('../load.js').useLoad>, lines?: number, children: (data: any) => any}} props
 */
export function Loaded({ load, lines, children }) {
  const loaded = load.data !== undefined;
  if (load.error) return html`<${ErrorBox} error=${load.error} retry=${load.reload} />${loaded && children(load.data)}`;
  if (!loaded) return html`<${Skeleton} lines=${lines} />`;
  return children(load.data);
}

const toasts = store([]);
let nextToast = 1;
const TOAST_MS = 5000;

const MOST_TOASTS = 3; // besides those with an action

/** Removes the oldest messages without an action. */
function withRoom(all) {
  const others = all.filter((one) => !one.action).slice(1 - MOST_TOASTS);
  return all.filter((one) => one.action || others.includes(one));
}

/**
 * Shows a message for a few seconds; errors stay until the user closes them, and those with an action until the caller does.
 * @param {string} text
 * @param {'good'|'bad'|'info'} [tone]
 * @param {string} [link] a path of the console
 * @param {{label: string, run: () => void}} [action] a button
 * @returns {() => void} closes it
 */
export function toast(text, tone = 'good', link, action) {
  const mine = { key: nextToast++, text, tone, link, action };
  toasts.set((all) => [...withRoom(all), mine]);
  if (tone !== 'bad' && !action) setTimeout(() => dismiss(mine.key), TOAST_MS);
  return () => dismiss(mine.key);
}

/** Shows the error of a failed action, with advice. An action that the user cancelled shows none. */
export const toastError = (error) => !error.cancelled
  && toast([error.message, ...memberErrors(error), error.hint ?? advice(error)].join(' '), 'bad');

const dismiss = (key) => toasts.set((all) => all.filter((one) => one.key !== key));

/** Shows the toasts. The element is a popover, so that it lies above open dialogs. */
export function Toasts() {
  const all = useStore(toasts);
  const place = useRef();
  useEffect(() => {
    const box = place.current;
    if (!box.showPopover) return;
    if (box.matches(':popover-open')) box.hidePopover();
    if (all.length) box.showPopover();
  }, [all]);
  return html`<div class="toasts" ref=${place} popover="manual" role="status" aria-live="polite">
    ${all.map((one) => html`<div key=${one.key} class=${`toast ${one.tone}`}>
      ${one.link ? html`<a href=${one.link}>${one.text}</a>` : html`<span>${one.text}</span>`}
      ${one.action
        ? html`<button class="quiet small undo" onClick=${one.action.run}>${one.action.label}</button>`
        : html`<button class="bare" aria-label=${t('do.close')} onClick=${() => dismiss(one.key)}>
            <${Icon} name="close" size=${14} />
          </button>`}
    </div>`)}
  </div>`;
}

/** Runs an action once at a time: {busy, run}. An error is shown as a toast unless onError handles it. */
export function useAction(action, onError = toastError) {
  const [busy, setBusy] = useState(false);
  async function run(...args) {
    if (busy) return undefined;
    setBusy(true);
    try {
      return await action(...args);
    } catch (error) {
      onError(error);
      return undefined;
    } finally {
      setBusy(false);
    }
  }
  return { busy, run };
}
