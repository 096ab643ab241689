import { useLayoutEffect } from '../lib.js';

const OFF = 'kontor.review.keys'; // people who speak to their computer may switch the keys off (WCAG 2.1.4)
const TEXT_FIELDS = 'input:not([type="radio"], [type="checkbox"]), textarea, select, [contenteditable]';

/** Whether the keys that are single letters are on. */
export const keysAreOn = () => localStorage.getItem(OFF) !== 'off';

/** Switches the keys that are single letters on or off. */
export function switchKeys(on) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, 'off');
}

/**
 * Calls the action of a key, unless the user types a text, holds a modifier, or a dialog is open.
 * @param {Record<string, () => void>} actions by key
 * @param {boolean} [resting] whether the keys do nothing yet
 */
export function useKeys(actions, resting = false) {
  useLayoutEffect(() => { // before the next key: it must meet the state that the last one led to
    const onKeyDown = (event) => {
      const action = actions[event.key];
      const typing = event.target.closest?.(TEXT_FIELDS) || document.querySelector('dialog[open]');
      const pressing = event.key === 'Enter' && event.target.closest?.('a, button, summary');
      if (!action || typing || pressing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (!keysAreOn() && event.key !== '?') return;
      event.preventDefault();
      if (!resting) action();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
}
