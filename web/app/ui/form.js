import { html, useId, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { ErrorBox, Notice } from './feedback.js';

/**
 * The state of a form: what was typed, what is wrong with it, whether it is being sent. Names with dots are nested
 * when the form is sent: `address.city`.
 *
 * When somebody else has changed the record meanwhile, `newer` reads it again in the shape of `initial`: what the user
 * has not touched takes the newer value, what he typed stays, and a field where both did something shows both.
 * @param {object} initial
 * @param {(values: object) => Promise<any>} submit
 * @param {() => Promise<object>} [newer]
 */
export function useForm(initial, submit, newer) {
  const [values, setValues] = useState(() => flatten(initial));
  const [theirs, setTheirs] = useState({});
  const [merged, setMerged] = useState(false);
  const base = useRef(values); // what the record held when the form was filled
  const [errors, setErrors] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const element = useRef();

  function set(name, value) {
    setValues((was) => ({ ...was, [name]: value }));
    setErrors(({ [name]: _, ...others }) => others);
  }
  function take(name) {
    set(name, theirs[name]);
    setTheirs(({ [name]: _, ...others }) => others);
  }
  async function fetchNewer() {
    setBusy(true);
    try {
      const fresh = flatten(await newer());
      const changed = Object.keys(fresh).filter((name) => fresh[name] !== base.current[name] && fresh[name] !== values[name]);
      const [clashing, untouched] = [changed.filter((name) => values[name] !== base.current[name]), changed.filter((name) => values[name] === base.current[name])];
      setValues((was) => ({ ...was, ...Object.fromEntries(untouched.map((name) => [name, fresh[name]])) }));
      setTheirs(Object.fromEntries(clashing.map((name) => [name, fresh[name]])));
      base.current = fresh;
      setProblem(null);
      setMerged(true);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }
  async function send(event) {
    event?.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(null);
    setMerged(false);
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
  return { values, errors, problem, busy, set, send, element, setProblem, theirs, take, merged, fetchNewer: newer && fetchNewer };
}

/**
 * The record that a form changes, with the ETag under which the form knows it: whoever saved meanwhile is not
 * overwritten unseen.
 * @param {string} path
 * @param {any} record
 * @param {string} [etag]
 */
export function useHeld(path, record, etag) {
  const held = useRef({ record, etag });
  return {
    get record() { return held.current.record; },
    /** Options for the request that changes the record. */
    get match() { return { ifMatch: held.current.etag }; },
    /** Reads the record again. */
    async read() {
      held.current = await api.tagged(path);
      return held.current.record;
    },
  };
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
  <${ErrorBox} error=${form.problem} action=${form.fetchNewer && (form.problem?.status === 412 || form.problem?.status === 409) && html`<button type="button" class="quiet" disabled=${form.busy} onClick=${form.fetchNewer}>${t('conflict.take')}</button>`} />
  ${form.merged && html`<${Notice}>${t('conflict.merged')}<//>`}
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
  const theirs = name in form.theirs && html`<${Theirs} form=${form} name=${name} options=${options} />`;
  if (type === 'checkbox') {
    return html`<div class=${`field check ${cls}`}>
      <label><input ...${common} type="checkbox" checked=${Boolean(value)} onChange=${(event) => form.set(name, event.target.checked)} /><span>${label}</span></label>
      ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}${theirs}
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
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}${theirs}
  </div>`;
}

/** What somebody else saved in a field in which the user typed something else. */
function Theirs({ form, name, options }) {
  const value = form.theirs[name];
  const text = options?.find(([key]) => String(key) === String(value))?.[1] ?? (typeof value === 'boolean' ? t(value ? 'why.yes' : 'why.no') : String(value) || t('conflict.empty'));
  return html`<small class="theirs">${t('conflict.theirs', { value: text })} <button type="button" class="link" onClick=${() => form.take(name)}>${t('conflict.use')}</button></small>`;
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
