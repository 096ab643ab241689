// Actions that take effect some seconds after the user has chosen them. Until then the user can undo them.
import { caller } from './access.js';
import { t } from './i18n.js';
import { store } from './store.js';
import { toast } from './ui/feedback.js';

const UNDO_MS = 10_000;

/** The actions that were not answered yet: {key, run, undone, failed, waits}. */
export const deferred = store([]);

const end = (one) => deferred.set((all) => all.filter((other) => other !== one));

/** Ends the wait of an action; returns whether it did wait. */
function stopWaiting(one) {
  clearTimeout(one.timer);
  one.close();
  const { waits } = one;
  one.waits = false;
  return waits;
}

async function start(one, options) {
  if (!stopWaiting(one)) return;
  try {
    await one.run(options);
  } catch (error) {
    one.failed(error);
  } finally {
    end(one);
  }
}

function undo(one) {
  if (!stopWaiting(one)) return;
  end(one);
  one.undone?.();
}

/**
 * Runs an action in ten seconds, with a message that offers to undo it. Does nothing while another one with its key waits: the keys of
 * a user may be faster than the screen.
 * @param {{key: string, text: string, run: (options?: {keepalive?: boolean}) => Promise<any>, undone?: () => void,
 *   failed: (error: any) => void}} action keepalive: the page is about to close
 */
export function defer(action) {
  if (deferred.get().some(({ key }) => key === action.key)) return;
  const one = { ...action, waits: true };
  one.close = toast(action.text, 'good', undefined, { label: t('do.undo'), run: () => undo(one) });
  one.timer = setTimeout(() => start(one), UNDO_MS);
  deferred.set((all) => [...all, one]);
}

/** Undoes the latest action; returns whether there was one. */
export function undoLast() {
  const last = deferred.get().findLast((one) => one.waits);
  if (last) undo(last);
  return Boolean(last);
}

/** Runs all waiting actions now, before the session ends. */
export const runDeferred = (options) => Promise.all(deferred.get().map((one) => start(one, options)));

window.addEventListener('pagehide', () => runDeferred({ keepalive: true }));
caller.watch((now) => now || deferred.get().forEach((one) => { // The next user must not send them.
  stopWaiting(one);
  end(one);
}));
