import { html, useId, useRef, useState } from '../lib.js';
import { t } from '../i18n.js';
import { ErrorBox } from './feedback.js';

/**
 * The state of a form: what was typed, what is wrong with it, whether it is being sent. Names with dots are nested
 * when the form is sent: `address.city`.
 * @param {object} initial
 * @param {(values: object) => Promise<any>} submit
 */
export function useForm(initial, submit) {
  const [values, setValues] = useState(() => flatten(initial));
  const [errors, setErrors] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const element = useRef();

  function set(name, value) {
    setValues((was) => ({ ...was, [name]: value }));
    setErrors(({ [name]: _, ...others }) => others);
  }
  async function send(event) {
    event?.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    setErrors({});
    try {
      await submit(nest(values));
    } catch (error) {
      const fields = error.fields;
      if (fields) setErrors(fields);
      const shown = fields && Object.keys(fields).every((name) => element.current?.elements[name]);
      if (!shown) setProblem(error);
      setTimeout(() => element.current?.querySelector('[aria-invalid="true"]')?.focus());
    } finally {
      setBusy(false);
    }
  }
  return { values, errors, problem, busy, set, send, element, setProblem };
}

function flatten(object, prefix = '', into = {}) {
  for (const [name, value] of Object.entries(object)) {
    if (value && typeof value === 'object' && !Array.isArray(value)) flatten(value, `${prefix}${name}.`, into);
    else into[prefix + name] = value ?? '';
  }
  return into;
}

function nest(values) {
  const out = {};
  for (const [name, value] of Object.entries(values)) {
    const path = name.split('.');
    const last = path.pop();
    const place = path.reduce((object, part) => (object[part] ??= {}), out);
    place[last] = value;
  }
  return out;
}

/** The form element; its problem, if it has one that belongs to no field, stands above the fields. */
export const Form = ({ form, children, class: name = '' }) => html`<form class=${name} ref=${form.element} onSubmit=${form.send} noValidate>
  <${ErrorBox} error=${form.problem} />
  ${children}
</form>`;

/**
 * A labelled control with its hint and its error.
 * @param {{form: ReturnType<typeof useForm>, name: string, label: string, hint?: any, type?: string, options?: any[], rows?: number, optional?: boolean}} props
 *   options: [value, text] pairs make a select; rows makes a text area.
 */
export function Field({ form, name, label, hint, type = 'text', options, rows, optional, class: cls = '', ...rest }) {
  const id = useId();
  const error = form.errors[name];
  const value = form.values[name] ?? '';
  const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  const common = { id, name, 'aria-invalid': error ? 'true' : undefined, 'aria-describedby': described, ...rest };
  const onInput = (event) => form.set(name, event.target.value);
  if (type === 'checkbox') {
    return html`<div class=${`field check ${cls}`}>
      <label><input ...${common} type="checkbox" checked=${Boolean(value)} onChange=${(event) => form.set(name, event.target.checked)} /><span>${label}</span></label>
      ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
    </div>`;
  }
  return html`<div class=${`field ${cls}`}>
    <label for=${id}>${label}${optional && html` <span class="optional">${t('form.optional')}</span>`}</label>
    ${options
      ? html`<select ...${common} value=${value} onChange=${onInput}>${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${String(key) === String(value)}>${text}</option>`)}</select>`
      : rows
        ? html`<textarea ...${common} rows=${rows} value=${value} onInput=${onInput}></textarea>`
        : html`<input ...${common} type=${type} value=${value} onInput=${onInput} />`}
    ${hint && !error && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
  </div>`;
}

/** The buttons below a form. */
export const Actions = ({ form, label, cancel }) => html`<div class="actions">
  ${cancel && html`<button type="button" class="quiet" onClick=${cancel}>${t('do.cancel')}</button>`}
  <button type="submit" aria-busy=${form.busy ? 'true' : undefined} disabled=${form.busy}>${label}</button>
</div>`;

/** A password field whose content can be shown. */
export function PasswordField({ form, name = 'password', label, autocomplete, hint }) {
  const [shown, setShown] = useState(false);
  return html`<div class="password">
    <${Field} form=${form} name=${name} label=${label} hint=${hint} type=${shown ? 'text' : 'password'} autocomplete=${autocomplete} spellcheck="false" autocapitalize="none" />
    <button type="button" class="bare" aria-pressed=${shown} onClick=${() => setShown(!shown)}>${shown ? t('do.hide') : t('do.show')}</button>
  </div>`;
}
