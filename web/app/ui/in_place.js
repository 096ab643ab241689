import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { t } from '../i18n.js';
import { toast, toastError } from './feedback.js';
import { Icon } from './icon.js';

const UNDO_MS = 10_000;

/** Says that a field is changed, with a button that restores its value, for ten seconds. */
function offerUndo(label, restore) {
  let timer;
  const close = toast(t('stream.changed', { field: label }), 'good', undefined, {
    label: t('do.undo'),
    run() {
      clearTimeout(timer);
      close();
      restore().catch(toastError);
    },
  });
  timer = setTimeout(close, UNDO_MS);
}

/**
 * A value that is edited where it stands. Enter and leaving the field save it, Escape does not.
 * @param {{label: string, value: string, type?: string, save?: (value: string, etag?: string) => Promise<string>,
 *   children: any}} props
 *   save: absent without the right, resolves to the ETag afterwards; etag: of the version to change, by default the one that is shown;
 *   children: the value as it is shown
 */
export function InPlace({ label, value = '', type = 'text', save, children }) {
  const [typed, setTyped] = useState(null); // null: not being edited
  const field = useRef();
  const button = useRef();
  const editing = typed !== null;
  useLayoutEffect(() => {
    if (editing) field.current.focus();
  }, [editing]);
  if (!save) return children;
  const stop = () => {
    setTyped(null);
    requestAnimationFrame(() => document.activeElement === document.body && button.current?.focus());
  };
  async function submit(event) {
    event?.preventDefault();
    const next = typed?.trim();
    if (typed === null || next === value) return stop();
    stop();
    try {
      const etag = await save(next);
      offerUndo(label, () => save(value, etag)); // only if no other change has followed
    } catch (error) {
      toastError(error);
    }
    return undefined;
  }
  const onKeyDown = (event) => event.key === 'Escape' && stop();
  if (editing) {
    return html`<form class="in-place-form" onSubmit=${submit}>
      <input ref=${field} type=${type} aria-label=${label} value=${typed} onInput=${(event) => setTyped(event.target.value)}
        onKeyDown=${onKeyDown} onBlur=${() => submit()} />
    </form>`;
  }
  return html`<span class="in-place">${children}<button ref=${button} type="button" class="bare"
    aria-label=${t('stream.edit', { field: label })} onClick=${() => setTyped(value)}><${Icon} name="edit" size=${13} /></button></span>`;
}
