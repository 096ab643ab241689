import { html, useEffect, useId, useRef } from '../lib.js';
import { t } from '../i18n.js';
import { route } from '../router.js';
import { store, useStore } from '../store.js';
import { Icon } from './icon.js';

/**
 * A modal dialog; the browser keeps the focus inside and gives it back afterwards.
 * @param {{title: string, close?: () => void, wide?: boolean, children: any}} props without close it cannot be dismissed
 */
export function Dialog({ title, close, wide, children }) {
  const element = useRef();
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    (dialog.querySelector('[autofocus], article input, article select, article textarea') ?? dialog.querySelector('article button'))?.focus();
    return () => {
      dialog.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  const cancel = (event) => {
    if (event.target !== element.current) return;
    event.preventDefault();
    close?.();
  };
  return html`<dialog ref=${element} aria-labelledby=${id} onCancel=${cancel} class=${wide ? 'wide' : ''}>
    <article>
      <header>
        <h2 id=${id}>${title}</h2>
        ${close && html`<button class="bare" type="button" aria-label=${t('do.close')} onClick=${close}><${Icon} name="close" /></button>`}
      </header>
      ${children}
    </article>
  </dialog>`;
}

const question = store(null);

/**
 * Asks before something that cannot be undone.
 * @param {{title: string, text: string, action: string, danger?: boolean}} ask
 * @returns {Promise<boolean>}
 */
export const confirm = (ask) => new Promise((answer) => question.set({ ...ask, answer }));

/** The place where questions of confirm() appear. */
export function Questions() {
  const ask = useStore(question);
  const { path } = useStore(route);
  const answer = (yes) => {
    const asked = question.get();
    question.set(null);
    asked?.answer(yes);
  };
  useEffect(() => () => answer(false), [path]); // A question goes with its screen.
  if (!ask) return null;
  return html`<${Dialog} title=${ask.title} close=${() => answer(false)}>
    <p>${ask.text}</p>
    <div class="actions">
      <button class="quiet" onClick=${() => answer(false)}>${t('do.cancel')}</button>
      <button class=${ask.danger === false ? '' : 'danger'} autofocus onClick=${() => answer(true)}>${ask.action}</button>
    </div>
  <//>`;
}
