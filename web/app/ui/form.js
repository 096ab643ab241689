import { html, useEffect, useId, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { route } from '../router.js';
import { drafts, useUnsaved } from '../unsaved.js';
import { ErrorBox, Notice } from './feedback.js';

/**
 * The state of a form: its values, its errors, and whether it is being sent. Names with dots are nested when the form
 * is sent: `address.city`.
 *
 * When the record was changed meanwhile, `reload` reads it again in the shape of `initial`. Fields that the user has not
 * touched take the new value; fields that the user has changed keep it. A field that both changed is a conflict: it
 * shows both values.
 *
 * The input is kept as a draft while the form is shown, except secrets: after a reload the form has it again. Leaving the
 * screen asks before it is discarded.
 * @param {object} initial
 * @param {(values: object) => Promise<any>} submit
 * @param {() => Promise<object>} [reload]
 * @param {string[]} [notTyped] names of fields that are set with one key or click: they are no draft, and leaving asks nothing about them
 */
export function useForm(initial, submit, reload, notTyped = []) {
  const start = useRef(null);
  start.current ??= flatten(initial);
  const draft = useDraft(start.current);
  const [values, setValues] = useState(() => ({ ...start.current, ...draft.found }));
  const [conflicts, setConflicts] = useState({});
  const [merged, setMerged] = useState(false);
  const base = useRef(start.current); // the values of the record when the form was filled
  const typed = useRef(values); // the values now
  typed.current = values;
  const [errors, setErrors] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const element = useRef();
  const [done, setDone] = useState(false); // sent
  const settle = useUnsaved(!busy && !done && draft.keep(changesOf(base.current, values, notTyped)));

  function set(name, value) {
    setDone(false);
    setValues((was) => ({ ...was, [name]: value }));
    setErrors(({ [name]: _, ...others }) => others);
  }
  /** Removes the error of a field that the form does not hold, such as a list of files. */
  const clear = (name) => setErrors(({ [name]: _, ...others }) => others);
  function acceptConflict(name) {
    set(name, conflicts[name]);
    setConflicts(({ [name]: _, ...others }) => others);
  }
  async function mergeNewer() {
    setBusy(true);
    try {
      const fresh = flatten(await reload());
      const merge = mergeValues(base.current, typed.current, fresh); // The user may have typed meanwhile.
      setValues((was) => ({ ...was, ...merge.updates }));
      setConflicts(merge.conflicts);
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
    const wrong = wrongTexts(element.current);
    setBusy(true);
    settle(); // submit may go to another screen
    setProblem(null);
    setMerged(false);
    setErrors({});
    try {
      await submit(nest({ ...values, ...Object.fromEntries(Object.keys(wrong).map((name) => [name, NO_VALUE])) }));
      setDone(true);
      draft.forget();
    } catch (error) {
      const fields = { ...error.fields, ...wrong };
      if (Object.keys(fields).length) setErrors(fields);
      else setProblem(error);
      setTimeout(() => {
        const unplaced = unplacedErrors(element.current, fields);
        if (unplaced) setProblem(Object.assign(error, { unplaced }));
        element.current?.querySelector('[aria-invalid="true"]')?.focus();
      });
    } finally {
      setBusy(false);
    }
  }
  function discardDraft() {
    setValues(base.current);
    setErrors({});
    draft.forget();
  }
  return {
    values, errors, problem, busy, set, clear, send, element, setErrors, setProblem, conflicts, acceptConflict, merged,
    mergeNewer: reload && mergeNewer,
    discardDraft: draft.found && !done && discardDraft,
  };
}

const SECRET = /^(.*password|otp|code|.*_code|.*secret|.*token|api_key)$/;
const isSecret = (name) => SECRET.test(name) && !name.endsWith('postal_code');

/** The values that a user has changed, without secrets and some others. */
const changesOf = (base, values, without) => Object.fromEntries(Object.entries(values)
  .filter(([name, value]) => !isSecret(name) && !without.includes(name) && String(value) !== String(base[name] ?? '')));

/** The draft of a form, by its address and its fields: {found, keep, forget}. It ends with the form. */
function useDraft(initial) {
  const name = useRef(null);
  name.current ??= `${route.get().path} ${Object.keys(initial).sort().join(' ')}`;
  const found = useRef(null);
  found.current ??= { values: drafts.read(name.current) };
  const forget = () => {
    drafts.remove(name.current);
    found.current = {};
  };
  useEffect(() => forget, []);
  return {
    found: found.current.values, forget,
    /** Writes the changes, and returns whether there are any. */
    keep(changes) {
      const any = Object.keys(changes).length > 0;
      if (any) drafts.write(name.current, changes);
      else drafts.remove(name.current);
      return any;
    },
  };
}

/** Merges a newer record into a form; base is the record that the form was filled with. */
function mergeValues(base, values, fresh) {
  const changed = Object.keys(fresh).filter((name) => fresh[name] !== base[name] && fresh[name] !== values[name]);
  const pick = (touched) => Object.fromEntries(changed
    .filter((name) => (values[name] !== base[name]) === touched)
    .map((name) => [name, fresh[name]]));
  return { updates: pick(false), conflicts: pick(true) };
}

/**
 * The record that a form edits, with the ETag of the version it shows, so that no other change is overwritten unseen.
 * @param {string} path
 * @param {any} record
 * @param {string} [etag]
 */
export function useEditedRecord(path, record, etag) {
  const edited = useRef({ record, etag });
  return {
    get record() { return edited.current.record; },
    /** Options for the request that changes the record. */
    get match() { return { ifMatch: edited.current.etag }; },
    /** Reads the record again. */
    async reload() {
      edited.current = await api.withETag(path);
      return edited.current.record;
    },
  };
}

/** The errors that no field of the form shows, or null. */
function unplacedErrors(form, fields) {
  const shown = [...form?.querySelectorAll('.field-error') ?? []].map((one) => one.textContent);
  const rest = Object.entries(fields ?? {}).filter(([, text]) => !shown.includes(text));
  return rest.length > 0 ? Object.fromEntries(rest) : null;
}

/** Sent instead of text that is no value: neither a date nor a country, so that the server rejects it. */
const NO_VALUE = '?';

/**
 * The errors of controls whose text is no value, such as an invalid date, by name. They are in the user's words; the request finds all
 * other errors of the form.
 */
const wrongTexts = (form) => Object.fromEntries([...form?.elements ?? []].filter((one) => one.validity?.customError)
  .map((one) => [one.name, one.validationMessage]));

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

/** The form element; an error that belongs to no field stands above the fields. */
export function Form({ form, children, class: name = '' }) {
  useEffect(() => { // A dialog asks before it closes over a restored draft, as over what was typed.
    if (form.discardDraft) form.element.current.dispatchEvent(new Event('input', { bubbles: true }));
  }, []);
  const status = form.problem?.status;
  const merge = form.mergeNewer && (status === 412 || status === 409)
    && html`<button type="button" class="quiet" disabled=${form.busy} onClick=${form.mergeNewer}>${t('conflict.merge')}</button>`;
  return html`<form class=${name} ref=${form.element} onSubmit=${form.send} noValidate>
    <${ErrorBox} error=${form.problem} action=${merge} />
    ${form.merged && html`<${Notice}>${t('conflict.merged')}<//>`}
    ${form.discardDraft && html`<${Notice} action=${html`<button type="button" class="quiet small" onClick=${form.discardDraft}>
      ${t('discard.do')}</button>`}>${t('draft.restored')}<//>`}
    ${children}
  </form>`;
}

/** The control of a field: a select, a text area or an input. */
function Control({ common, options, rows, type, value, onInput }) {
  if (options) {
    return html`<select ...${common} value=${value} onChange=${onInput}>
      ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${String(key) === String(value)}>${text}</option>`)}
    </select>`;
  }
  if (rows) return html`<textarea ...${common} rows=${rows} value=${value} onInput=${onInput}></textarea>`;
  return html`<input ...${common} type=${type} value=${value} onInput=${onInput} />`;
}

/**
 * A labelled control with its hint and its error.
 * @param {{form: ReturnType<typeof useForm>, name: string, label: string, hint?: any, type?: string, options?: any[],
 *   rows?: number, optional?: boolean, control?: any}} props
 *   options: [value, text] pairs make a select; rows makes a text area; control: a component instead of them.
 */
export function Field({ form, name, label, hint, type = 'text', options, rows, optional, control = Control, class: cls = '', ...rest }) {
  const id = useId();
  const error = form.errors[name];
  const value = form.values[name] ?? '';
  const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  const common = { id, name, 'aria-invalid': error ? 'true' : undefined, 'aria-describedby': described, ...rest };
  const notes = html`
    ${hint && !error && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
    ${name in form.conflicts && html`<${Conflict} form=${form} name=${name} options=${options} />`}`;
  if (type === 'checkbox') {
    const onChange = (event) => form.set(name, event.target.checked);
    return html`<div class=${`field check ${cls}`}>
      <label><input ...${common} type="checkbox" checked=${Boolean(value)} onChange=${onChange} /><span>${label}</span></label>
      ${notes}
    </div>`;
  }
  const onInput = (event) => form.set(name, event.target.value);
  return html`<div class=${`field ${cls}`}>
    <label for=${id}>${label}${optional && html` <span class="optional">${t('form.optional')}</span>`}</label>
    <${control} common=${common} options=${options} rows=${rows} type=${type} value=${value} onInput=${onInput} />
    ${notes}
  </div>`;
}

/** The value that another user saved in a field that this user has changed too. */
export function Conflict({ form, name, options }) {
  const value = form.conflicts[name];
  const option = options?.find(([key]) => String(key) === String(value))?.[1];
  const plain = typeof value === 'boolean' ? t(value ? 'do.yes' : 'do.no') : date(value) || String(value) || t('conflict.empty');
  return html`<small class="conflict">
    ${t('conflict.other_value', { value: option ?? plain })} <button type="button" class="link" onClick=${() => form.acceptConflict(name)}>
      ${t('conflict.use')}
    </button>
  </small>`;
}

/** The buttons below a form. */
export const Actions = ({ form, label, cancel }) => html`<div class="actions">
  ${cancel && html`<button type="button" class="quiet" onClick=${cancel}>${t('do.cancel')}</button>`}
  <button type="submit" aria-busy=${form.busy ? 'true' : undefined} disabled=${form.busy}>${label}</button>
</div>`;

/** The field for a one-time code. */
export const CodeField = ({ form, ...rest }) => html`<${Field} form=${form} name="otp" label=${t('otp.code')} inputmode="numeric"
  autocomplete="one-time-code" maxlength="7" ...${rest} />`;

/** A code without the spaces that users type to group its digits. */
export const codeDigits = (typed) => typed.replaceAll(/\s/g, '');

/** A password field with a button that shows its content. */
export function PasswordField({ form, name = 'password', label, autocomplete, hint }) {
  const [shown, setShown] = useState(false);
  return html`<div class="password">
    <${Field} form=${form} name=${name} label=${label} hint=${hint} type=${shown ? 'text' : 'password'}
      autocomplete=${autocomplete} spellcheck=${false} autocapitalize="none" />
    <button type="button" class="bare" aria-pressed=${shown} onClick=${() => setShown(!shown)}>
      ${shown ? t('do.hide') : t('do.show')}
    </button>
  </div>`;
}
