// Actions that take effect some seconds after the user has chosen them. Until then the user can undo them.
import { caller } from './access.js';
import { t } from './i18n.js';
import { store } from './store.js';
import { toast } from './ui/feedback.js';

const UNDO_MS = 10_000;

/** The actions that wait: {key, run, undone, failed}. */
export const deferred = store([]);

/** Removes an action from those that wait; returns whether it did wait. */
function take(one) {
  clearTimeout(one.timer);
  one.close();
  const waits = deferred.get().includes(one);
  deferred.set((all) => all.filter((other) => other !== one));
  return waits;
}

const start = (one, options) => (take(one) ? one.run(options).catch(one.failed) : Promise.resolve());

function undo(one) {
  if (take(one)) one.undone?.();
}

/**
 * Runs an action in ten seconds, with a message that offers to undo it.
 * @param {{key: string, text: string, run: (options?: {keepalive?: boolean}) => Promise<any>, undone?: () => void,
 *   failed: (error: any) => void}} action keepalive: the page is about to close
 */
export function defer(action) {
  const one = { ...action };
  one.close = toast(action.text, 'good', undefined, { label: t('do.undo'), run: () => undo(one) });
  one.timer = setTimeout(() => start(one), UNDO_MS);
  deferred.set((all) => [...all, one]);
}

/** Undoes the latest action; returns whether there was one. */
export function undoLast() {
  const last = deferred.get().at(-1);
  if (last) undo(last);
  return Boolean(last);
}

/** Runs all waiting actions now, before the session ends. */
export const runDeferred = (options) => Promise.all(deferred.get().map((one) => start(one, options)));

window.addEventListener('pagehide', () => runDeferred({ keepalive: true }));
caller.watch((now) => now || deferred.get().forEach(take)); // The next user must not send them.
