import { html, useId } from '../lib.js';
import { t } from '../i18n.js';
import { useTyped } from '../list.js';
import { Icon } from './icon.js';

/** The field to search a list with; it passes the text on once the typing rests. */
export function Search({ value, onSearch, label = t('list.search') }) {
  const [typed, type] = useTyped(value, onSearch);
  const id = useId();
  return html`<div class="field search"><label for=${id}>${label}</label><${Icon} name="search" size=${16} /><input id=${id} type="search" value=${typed} onInput=${(event) => type(event.target.value)} /></div>`;
}

/** A filter with a few values; the first means all. */
export function Filter({ label, value, options, onChange, all = t('list.all') }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}</label><select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${all !== null && html`<option value="" selected=${!value}>${all}</option>`}
    ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
  </select></div>`;
}

/** The bar above a list. */
export const Filters = ({ children }) => html`<div class="filters" role="search">${children}</div>`;
