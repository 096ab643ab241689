import { html, useId } from '../lib.js';
import { t } from '../i18n.js';
import { useDebounced } from '../list.js';
import { Icon } from './icon.js';

/** The search field of a list; it reports the text after the user stops typing. */
export function Search({ value, onSearch, label = t('list.search') }) {
  const [typed, type] = useDebounced(value, onSearch);
  const id = useId();
  return html`<div class="search">
    <label class="sr" for=${id}>${label}</label><${Icon} name="search" size=${16} />
    <input id=${id} type="search" placeholder=${label} value=${typed} onInput=${(event) => type(event.target.value)} />
  </div>`;
}

/** A filter with a few values. The first option means all; with all=null there is no such option. */
export function Filter({ label, value, options, onChange, all = t('list.all') }) {
  const id = useId();
  const chosen = value || (all === null ? options[0][0] : '');
  return html`<div class=${`filter${value ? ' set' : ''}`}>
    <label for=${id}>${label}</label>
    <select id=${id} value=${chosen} onChange=${(event) => onChange(event.target.value)}>
      ${all !== null && html`<option value="" selected=${!chosen}>${all}</option>`}
      ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === chosen}>${text}</option>`)}
    </select>
  </div>`;
}

/** The options of a filter for the values of a group of texts. */
export const optionsOf = (values, text) => values.map((value) => [value, text(value)]);

/** The bar above a list. */
export const Filters = ({ children }) => html`<div class="filters" role="search">${children}</div>`;
