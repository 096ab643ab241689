import { html, useEffect, useLayoutEffect, useState } from '../lib.js';
import { t } from '../i18n.js';
import { Dialog } from '../ui/dialog.js';

const OFF = 'kontor.review.keys'; // people who speak to their computer may switch the keys off (WCAG 2.1.4)
const TEXT_FIELDS = 'input:not([type="radio"], [type="checkbox"]), textarea, select, [contenteditable]';

/** Whether the keys of the review are on. */
export const keysAreOn = () => localStorage.getItem(OFF) !== 'off';

const REST_MS = 1000;

/** Whether the keys that decide rest: until a second after what is decided on has been painted. */
export function useResting() {
  const [resting, setResting] = useState(true);
  useEffect(() => {
    let timer;
    const frame = requestAnimationFrame(() => { // The next frame shows what this one has laid out.
      timer = setTimeout(() => setResting(false), REST_MS);
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return resting;
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

const KEYS = [['o', 'review.key_o'], ['a', 'review.key_a'], ['r', 'review.key_r'], ['n', 'review.key_n'], ['1 … 9', 'review.key_digits'],
  ['Enter', 'review.key_enter'], ['j', 'review.key_j'], ['k', 'review.key_k'], ['t', 'review.key_t'], ['u', 'review.key_u'],
  ['?', 'review.key_help']];

/** The keys, and a switch for them. */
export function KeysDialog({ close }) {
  const [on, setOn] = useState(keysAreOn());
  const toggle = (event) => {
    setOn(event.target.checked);
    if (event.target.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, 'off');
  };
  return html`<${Dialog} title=${t('review.keys')} close=${close}>
    <dl class="facts list">${KEYS.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${t(text)}</dd></div>`)}</dl>
    <div class="field check">
      <label><input type="checkbox" checked=${on} onChange=${toggle} /><span>${t('review.keys_on')}</span></label>
    </div>
  <//>`;
}
