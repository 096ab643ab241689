// Input of users that is not saved. Leaving a screen asks before it discards that, and a reload keeps it.
import { useEffect, useRef } from './lib.js';
import { caller } from './access.js';
import { t } from './i18n.js';
import { guardLeaving } from './router.js';
import { confirm } from './ui/dialog.js';

const PREFIX = 'kontor.draft.';
const unsaved = new Set(); // one token for each form with changes

/** Deletes the drafts of this tab: the next user must not see them. */
function forgetDrafts() {
  unsaved.clear();
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}

/** Drafts of this tab, by a name that is unique in the console. They survive a reload, and end with the session of their user. */
export const drafts = {
  /** Returns the draft with a name, or undefined. Those of another user are none. */
  read(name) {
    try {
      const { user, value } = JSON.parse(sessionStorage.getItem(PREFIX + name));
      return user === caller.get()?.me.id ? value : undefined;
    } catch {
      return undefined;
    }
  },
  write(name, value) {
    const user = caller.get()?.me.id;
    if (!user) return;
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify({ user, value }));
    } catch {
      // The storage is full: the draft does not survive a reload, and the question still comes.
    }
  },
  remove: (name) => sessionStorage.removeItem(PREFIX + name),
};

const hasDrafts = () => Object.keys(sessionStorage).some((key) => key.startsWith(PREFIX));

/**
 * Counts the component as unsaved while it has changes and a user is signed in.
 * @returns {() => void} ends that at once, until the next rendering: what was typed is being sent
 */
export function useUnsaved(changed) {
  const token = useRef({});
  const counts = changed && Boolean(caller.get());
  if (counts) unsaved.add(token.current); // at once: a click may come before an effect
  else unsaved.delete(token.current);
  useEffect(() => () => unsaved.delete(token.current), []);
  return () => unsaved.delete(token.current);
}

/** Asks whether what was typed may be discarded; it asks nothing if there is none. */
export async function mayDiscard() {
  if (!unsaved.size) return true;
  const yes = await confirm({ title: t('discard.title'), text: t('discard.text'), action: t('discard.do') });
  if (yes) unsaved.clear();
  return yes;
}

/** Asks before the user leaves a screen, and lets the browser ask before it closes or reloads the page. */
export function watchLeaving() {
  guardLeaving({ isNeeded: () => unsaved.size > 0, ask: mayDiscard });
  window.addEventListener('beforeunload', (event) => (unsaved.size || hasDrafts()) && event.preventDefault());
  caller.watch((now) => now || forgetDrafts());
}
