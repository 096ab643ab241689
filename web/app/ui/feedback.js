import { html, useEffect, useRef, useState } from '../lib.js';
import { advice } from '../api.js';
import { t, term } from '../i18n.js';
import { store, useStore } from '../store.js';
import { useCountdown } from './countdown.js';
import { Icon } from './icon.js';

/** How long to wait, counted down; aria-live is off, so that nobody has every second read to him. */
function Wait({ seconds }) {
  const [left] = useCountdown(seconds);
  return html`<p aria-live="off">${left > 0 ? t('advice.wait', { n: left }) : t('advice.now')}</p>`;
}

let nextWait = 1;
const waits = new WeakMap(); // Each error counts down on its own, however often it is drawn.

function keyOf(error) {
  if (!waits.has(error)) waits.set(error, nextWait++);
  return waits.get(error);
}

/**
 * What went wrong, in the server's words, what to do about it, and the button to do it.
 * @param {{error: any, retry?: () => void, hint?: string, action?: any}} props hint: what to do, where a screen knows
 *   better than advice(); action: a button in the place of the one that tries again
 */
export function ErrorBox({ error, retry, hint, action }) {
  if (!error) return null;
  return html`<div class="notice bad" role="alert">
    <${Icon} name="warning" />
    <div>
      <strong>${error.message}</strong>
      ${error.retryAfter && !hint ? html`<${Wait} key=${keyOf(error)} seconds=${error.retryAfter} />` : html`<p>${hint ?? advice(error)}</p>`}
      ${error.details?.allowed?.length > 0 && html`<p>${t('advice.allowed', { what: error.details.allowed.map((state) => term('kyc_status', state)).join(', ') })}</p>`}
      ${error.code && html`<p class="fine">${error.code}${error.requestId && html` · ${t('error.request', { id: error.requestId })}`}</p>`}
    </div>
    ${action ?? (retry && html`<button class="quiet" onClick=${retry}>${t('do.retry')}</button>`)}
  </div>`;
}

/** A calm remark: tone is 'info', 'good', 'warn' or 'bad'. */
export const Notice = ({ tone = 'info', title, children, action }) => html`<div class=${`notice ${tone}`} role=${tone === 'bad' ? 'alert' : 'status'}>
  <${Icon} name=${tone === 'good' ? 'check' : tone === 'info' ? 'bell' : 'warning'} />
  <div>${title && html`<strong>${title}</strong>`}<div>${children}</div></div>
  ${action}
</div>`;

/** What a list says when it has nothing to show, and what to do about it. */
export const Empty = ({ icon, title, children, action }) => html`<div class="empty">
  ${icon && html`<span class="empty-icon"><${Icon} name=${icon} size=${26} /></span>`}
  <p class="empty-title">${title}</p>
  ${children && html`<p>${children}</p>`}
  ${action}
</div>`;

/** Grey lines in the place of what is still on its way. */
export function Skeleton({ lines = 4, height }) {
  return html`<div class="skeleton" aria-busy="true" aria-label=${t('loading')} role="status">
    ${Array.from({ length: lines }, (_, i) => html`<span key=${i} class=${`bar w${(i * 7) % 4}`} style=${height ? { height: `${height}px` } : undefined}></span>`)}
  </div>`;
}

/**
 * Shows the state of a load: its skeleton, its error above what was there before, or its content.
 * @param {{load: ReturnType<import('../load.js').useLoad>, lines?: number, children: (data: any) => any}} props
 */
export function Loaded({ load, lines, children }) {
  if (load.error) return html`<${ErrorBox} error=${load.error} retry=${load.reload} />${load.data !== undefined && children(load.data)}`;
  if (load.data === undefined) return html`<${Skeleton} lines=${lines} />`;
  return children(load.data);
}

const toasts = store([]);
let nextToast = 1;
const TOAST_MS = 5000;

/** Tells briefly that something happened; errors stay until they are closed. */
export function toast(text, tone = 'good', link) {
  const mine = { key: nextToast++, text, tone, link };
  toasts.set((all) => [...all.slice(-2), mine]);
  if (tone !== 'bad') setTimeout(() => dismiss(mine.key), TOAST_MS);
}

/** Tells about a failed action: the server's message and what to do. */
export const toastError = (error) => toast(`${error.message} ${advice(error)}`, 'bad');

const dismiss = (key) => toasts.set((all) => all.filter((one) => one.key !== key));

/** The place where toasts appear. It is a popover, so that it lies above open dialogs. */
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
      <button class="bare" aria-label=${t('do.close')} onClick=${() => dismiss(one.key)}><${Icon} name="close" size=${14} /></button>
    </div>`)}
  </div>`;
}

/** Runs an action once at a time: {busy, run}. A failure is told by a toast unless onError takes it. */
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
