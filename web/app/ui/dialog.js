import { html, useEffect, useId, useRef } from '../lib.js';
import { t } from '../i18n.js';
import { route } from '../router.js';
import { store, useStore } from '../store.js';
import { Icon } from './icon.js';

/**
 * Shows a dialog element as modal while its component is mounted. The browser keeps the focus inside; afterwards the
 * focus returns to where it was.
 * @param {{current: HTMLDialogElement}} element
 * @param {(dialog: HTMLDialogElement) => void} [setFocus] moves the focus when the dialog opens
 */
export function useModal(element, setFocus) {
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    setFocus?.(dialog);
    return () => {
      dialog.close();
      restoreFocus(before);
    };
  }, []);
}

/** Focuses the first field of a dialog, or its first button. */
function focusFirst(dialog) {
  const field = dialog.querySelector('[autofocus], article input, article select, article textarea');
  (field ?? dialog.querySelector('article button'))?.focus();
}

/**
 * A modal dialog.
 * @param {{title: string, close?: () => void, wide?: boolean, class?: string, children: any}} props
 *   close: absent when the user must not dismiss the dialog. The user is asked before Escape and the button in the corner
 *   discard what was typed into a form.
 */
export function Dialog({ title, close, wide, class: name = '', children }) {
  const element = useRef();
  const id = useId();
  const typed = useRef(false); // into a form, which a user must not lose by mistake
  useModal(element, focusFirst);
  const asking = useRef(false);
  async function dismiss() {
    if (asking.current) return; // One Escape may reach both dialogs.
    asking.current = true;
    const asks = typed.current && element.current.querySelector('form');
    if (!asks || (await confirm({ title: t('discard.title'), text: t('discard.text'), action: t('discard.do') }))) close();
    setTimeout(() => (asking.current = false));
  }
  const cancel = (event) => {
    if (event.target !== element.current) return;
    event.preventDefault();
    if (close) dismiss();
  };
  const onInput = (event) => (typed.current ||= Boolean(event.target.closest('form')));
  // Browsers let a page prevent the first Escape only; the second one closes the dialog, which this reopens.
  const closed = (event) => event.target === element.current && element.current.isConnected && element.current.showModal();
  return html`<dialog ref=${element} aria-labelledby=${id} onCancel=${cancel} onClose=${closed} class=${wide ? 'wide' : name}>
    <article onInput=${onInput}>
      <header>
        <h2 id=${id}>${title}</h2>
        ${close && html`<button class="bare" type="button" aria-label=${t('do.close')} onClick=${dismiss}>
          <${Icon} name="close" />
        </button>`}
      </header>
      ${children}
    </article>
  </dialog>`;
}

/** Moves the focus back to where it was, or to the screen's heading when that element is gone. */
function restoreFocus(before) {
  const gone = () => !before?.isConnected || before === document.body;
  if (!gone()) before.focus();
  setTimeout(() => {
    if (gone() && document.activeElement === document.body) document.querySelector('main h1')?.focus({ preventScroll: true });
  });
}

const question = store(null);

/**
 * Asks the user to confirm an action.
 * @param {{title: string, text: string, action: string, danger?: boolean}} ask
 * @returns {Promise<boolean>}
 */
export const confirm = (ask) => new Promise((answer) => question.set({ ...ask, answer }));

/** Shows the questions of confirm(). */
export function ConfirmDialog() {
  const ask = useStore(question);
  const { path } = useStore(route);
  const answer = (yes) => {
    const asked = question.get();
    question.set(null);
    asked?.answer(yes);
  };
  useEffect(() => () => answer(false), [path]); // Leaving the screen cancels its question.
  if (!ask) return null;
  return html`<${Dialog} title=${ask.title} close=${() => answer(false)}>
    <p>${ask.text}</p>
    <div class="actions">
      <button class="quiet" onClick=${() => answer(false)}>${t('do.cancel')}</button>
      <button class=${ask.danger === false ? '' : 'danger'} autofocus onClick=${() => answer(true)}>${ask.action}</button>
    </div>
  <//>`;
}
