import { html, useEffect, useId, useRef } from '../lib.js';
import { t } from '../i18n.js';
import { route } from '../router.js';
import { store, useStore } from '../store.js';
import { Icon } from './icon.js';

/**
 * Opens a dialog element as a modal one for as long as its component lives. The browser keeps the focus inside; after
 * that it goes back to where it was.
 * @param {{current: HTMLDialogElement}} element
 * @param {(dialog: HTMLDialogElement) => void} [begin] chooses what has the focus first
 */
export function useModal(element, begin) {
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    begin?.(dialog);
    return () => {
      dialog.close();
      giveBack(before);
    };
  }, []);
}

/**
 * A modal dialog; the browser keeps the focus inside and gives it back afterwards.
 * @param {{title: string, close?: () => void, wide?: boolean, class?: string, children: any}} props without close it cannot be dismissed
 */
export function Dialog({ title, close, wide, class: name = '', children }) {
  const element = useRef();
  const id = useId();
  useModal(element, (dialog) => (dialog.querySelector('[autofocus], article input, article select, article textarea') ?? dialog.querySelector('article button'))?.focus());
  const cancel = (event) => {
    if (event.target !== element.current) return;
    event.preventDefault();
    close?.();
  };
  // A browser lets Escape be refused once; pressed again it closes the dialog whatever we say.
  const closed = (event) => event.target === element.current && element.current.isConnected && element.current.showModal();
  return html`<dialog ref=${element} aria-labelledby=${id} onCancel=${cancel} onClose=${closed} class=${wide ? 'wide' : name}>
    <article>
      <header>
        <h2 id=${id}>${title}</h2>
        ${close && html`<button class="bare" type="button" aria-label=${t('do.close')} onClick=${close}><${Icon} name="close" /></button>`}
      </header>
      ${children}
    </article>
  </dialog>`;
}

/** Gives the focus back to where it was; where that is gone, the screen's heading takes it. */
function giveBack(before) {
  const gone = () => !before?.isConnected || before === document.body;
  if (!gone()) before.focus();
  setTimeout(() => {
    if (gone() && document.activeElement === document.body) document.querySelector('main h1')?.focus({ preventScroll: true });
  });
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
