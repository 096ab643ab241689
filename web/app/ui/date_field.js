import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { dateLetters, dateText, isDate, parseDate, parseMoment } from '../dates.js';
import { t, useLanguage } from '../i18n.js';
import { usePreferences } from '../preferences.js';
import { Calendar } from './calendar.js';
import { Field } from './form.js';
import { Icon } from './icon.js';
import { afterPress } from './press.js';

/** The error for text that is no date. */
const problem = (exact) => t('date.invalid', { sample: dateText(exact ? '2026-12-31T08:00' : '2026-12-31', exact) });

/**
 * A date typed in the user's format, with a calendar. `value` is that of a native field, 2026-01-31 or 2026-01-31T08:00; text that is no
 * date is the value as it stands, and the field is invalid.
 */
function DateControl({ common, type, value, onInput, onBlur }) {
  usePreferences();
  useLanguage();
  const exact = type === 'datetime-local';
  const input = useRef();
  const [typed, setTyped] = useState(null); // the text while it is typed
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => input.current.setCustomValidity(value && !isDate(value, exact) ? problem(exact) : ''));
  const onType = (event) => {
    const text = event.target.value;
    setTyped(text);
    onInput({ target: { value: (exact ? parseMoment : parseDate)(text) ?? text.trim() } });
  };
  const leave = () => {
    setTyped(null);
    onBlur?.();
  };
  const close = () => {
    setOpen(false);
    input.current?.focus();
  };
  const pick = (day) => {
    close();
    onInput({ target: { value: exact ? `${day}T${isDate(value, exact) ? value.slice(11) : '00:00'}` : day } });
    setTyped(null);
    input.current.dispatchEvent(new CustomEvent('change', { bubbles: true }));
  };
  return html`<span class="date-field">
    <input ...${common} ref=${input} type="text" inputmode=${exact ? undefined : 'numeric'} placeholder=${dateLetters(exact)}
      autocomplete=${common.autocomplete ?? 'off'} value=${typed ?? dateText(value, exact)} onInput=${onType} onBlur=${leave} />
    <button type="button" class="bare" aria-label=${t('date.choose')} title=${t('date.choose')} aria-haspopup="dialog"
      aria-expanded=${open} disabled=${common.disabled} onClick=${() => setOpen(!open)}><${Icon} name="calendar" size=${16} /></button>
    ${open && html`<${Calendar} field=${input.current} pick=${pick} close=${close}
      value=${isDate(value, exact) ? value.slice(0, 10) : ''} />`}
  </span>`;
}

/** A field of a form for a date; exact: for a day and a time. See Field for the others. */
export const DateField = ({ exact, ...rest }) => html`
  <${Field} control=${DateControl} type=${exact ? 'datetime-local' : 'date'} ...${rest} />`;

/**
 * A date outside of a form. It calls onChange with '' or a date, and with typed text only if `raw` is set.
 * @param {{id: string, value: string, onChange: (value: string) => void, exact?: boolean, raw?: boolean}} props
 */
export function DateInput({ id, value, onChange, exact, raw }) {
  const [left, setLeft] = useState('');
  const [text, setText] = useState(value);
  const wrong = left && left === text && !isDate(text, exact);
  const onInput = ({ target }) => {
    setText(target.value);
    if (raw || !target.value || isDate(target.value, exact)) onChange(target.value);
  };
  const leave = () => afterPress(() => setLeft(text));
  const common = { id, 'aria-invalid': wrong ? 'true' : undefined, 'aria-describedby': wrong ? `${id}-error` : undefined };
  return html`<${DateControl} common=${common} type=${exact ? 'datetime-local' : 'date'} onInput=${onInput} onBlur=${leave}
    value=${text && !isDate(text, exact) ? text : value} />
    ${wrong && html`<small class="field-error" id=${`${id}-error`}>${problem(exact)}</small>`}`;
}
