import { html, useRef } from '../lib.js';
import { countries, countryName } from '../countries.js';
import { t } from '../i18n.js';
import { Conflict } from './form.js';
import { Combobox } from './picker.js';

const fold = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/** Finds countries by a part of their name or by their code. Names that begin with the text come first. */
function find(offered, typed) {
  const text = fold(typed.trim());
  const rows = offered.map(([code, name]) => ({ id: code, name, note: code, folded: fold(name) }));
  const rank = ({ id, folded }) => (fold(id) === text ? 0 : folded.startsWith(text) ? 1 : 2);
  const found = rows.filter(({ id, folded }) => folded.includes(text) || fold(id).startsWith(text));
  return text ? found.sort((a, b) => rank(a) - rank(b)) : found;
}

/** The code for what a user typed: of a country with exactly this name, else the text itself, which the server checks. */
function codeFor(offered, typed) {
  const text = typed.trim();
  const named = offered.find(([, name]) => fold(name) === fold(text));
  return named?.[0] ?? (/^[a-z]{2,3}$/i.test(text) ? text.toUpperCase() : text);
}

/**
 * Chooses a country by its name in the user's language; the form gets its code.
 * @param {{form: ReturnType<import('./form.js').useForm>, name: string, label: string, optional?: boolean, letters?: 2|3,
 *   any?: boolean}} props
 *   letters: of the code; any: the server takes each code of three letters, also those of people without the nationality of a state;
 *   a code that is not offered is marked
 */
export function CountryField({ form, name, label, optional, letters = 3, any = false }) {
  const offered = countries(letters, any);
  const typed = useRef({}); // the text in the field, and the code for it
  const value = form.values[name] ?? '';
  const onType = (text) => {
    typed.current = { text, code: codeFor(offered, text) };
    form.set(name, typed.current.code);
  };
  const pick = ({ id }) => {
    typed.current = {};
    form.set(name, id);
  };
  const shown = typed.current.code === value && typed.current.text !== undefined ? typed.current.text : countryName(value) ?? value;
  const listed = !value || offered.some(([code]) => code === value);
  const taken = listed || (any && /^[A-Z]{3}$/.test(value));
  return html`<${Combobox} name=${name} find=${async (text) => find(offered, text)} pick=${pick} onType=${onType} chosen=${shown}
    error=${form.errors[name]} whole invalid=${taken ? '' : t('country.unknown')}
    hint=${taken && !listed && t('country.unlisted_hint', { code: value })}
    label=${html`${label}${optional && html` <span class="optional">${t('form.optional')}</span>`}`} listLabel=${label}
    after=${name in form.conflicts && html`<${Conflict} form=${form} name=${name} options=${offered} />`} />`;
}
