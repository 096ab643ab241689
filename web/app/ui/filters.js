import { html, useId } from '../lib.js';
import { t } from '../i18n.js';
import { useTyped } from '../list.js';
import { Icon } from './icon.js';

/** The field to search a list with; it passes the text on once the typing rests. */
export function Search({ value, onSearch, label = t('list.search') }) {
  const [typed, type] = useTyped(value, onSearch);
  const id = useId();
  return html`<div class="search"><label class="sr" for=${id}>${label}</label><${Icon} name="search" size=${16} /><input id=${id} type="search" placeholder=${label} value=${typed} onInput=${(event) => type(event.target.value)} /></div>`;
}

/** A filter with a few values; the first means all, unless all is null. */
export function Filter({ label, value, options, onChange, all = t('list.all') }) {
  const id = useId();
  const chosen = value || (all === null ? options[0][0] : '');
  return html`<div class=${`filter${value ? ' set' : ''}`}><label for=${id}>${label}</label><select id=${id} value=${chosen} onChange=${(event) => onChange(event.target.value)}>
    ${all !== null && html`<option value="" selected=${!chosen}>${all}</option>`}
    ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === chosen}>${text}</option>`)}
  </select></div>`;
}

/** The bar above a list. */
export const Filters = ({ children }) => html`<div class="filters" role="search">${children}</div>`;
