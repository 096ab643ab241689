import { html, useEffect, useState } from '../lib.js';
import { t } from '../i18n.js';
import { Dialog } from '../ui/dialog.js';
import { keysAreOn, switchKeys } from '../ui/keys.js';

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

const KEYS = [['o', 'review.key_o'], ['a', 'review.key_a'], ['r', 'review.key_r'], ['n', 'review.key_n'], ['1 … 9', 'review.key_digits'],
  ['Enter', 'review.key_enter'], ['j', 'review.key_j'], ['k', 'review.key_k'], ['t', 'review.key_t'], ['u', 'review.key_u'],
  ['?', 'review.key_help']];

/** The keys, and a switch for them. */
export function KeysDialog({ close }) {
  const [on, setOn] = useState(keysAreOn());
  const toggle = (event) => {
    setOn(event.target.checked);
    switchKeys(event.target.checked);
  };
  return html`<${Dialog} title=${t('review.keys')} close=${close}>
    <dl class="facts list">${KEYS.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${t(text)}</dd></div>`)}</dl>
    <div class="field check">
      <label><input type="checkbox" checked=${on} onChange=${toggle} /><span>${t('review.keys_on')}</span></label>
    </div>
  <//>`;
}
