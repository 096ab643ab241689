import { html, useState } from '../lib.js';
import { t, term } from '../i18n.js';
import { ago, dateTime, number, percent } from '../format.js';
import { usePrefs } from '../prefs.js';
import { initials } from '../people.js';
import { Icon } from './icon.js';

const TONES = {
  verified: 'good', active: 'good', completed: 'good', sent: 'good', healthy: 'good', validated: 'good', accepted: 'good',
  pending: 'info', in_review: 'info', in_progress: 'info', queued: 'info', sending: 'info', assigned: 'info',
  action_required: 'warn', expired: 'warn', retrying: 'warn', unvalidated: 'warn',
  rejected: 'bad', disabled: 'bad', dead: 'bad', declined: 'bad', canceled: 'none', not_started: 'none', none: 'none', inactive: 'none',
};

/** A state as a word with a tone; the word alone carries the meaning. */
export const Badge = ({ group, value, tone }) => html`<span class=${`badge ${tone ?? TONES[value] ?? 'none'}`}>${group ? term(group, value) : value}</span>`;

/** A timestamp: how long ago, with the exact time on demand. */
export function When({ at, exact }) {
  usePrefs();
  if (!at) return html`<span class="none">–</span>`;
  return html`<time dateTime=${at} title=${dateTime(at)}>${exact ? dateTime(at) : ago(at)}</time>`;
}

/** Terms and their values: in columns, or as a list. Rows are [term, value]; those without a value show a dash. */
export const Facts = ({ rows, list }) => html`<dl class=${list ? 'facts list' : 'facts'}>
  ${rows.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value || value === 0 ? value : html`<span class="none">–</span>`}</dd></div>`)}
</dl>`;

/** How far something is, as a bar and as words. */
export function Progress({ part, whole, label }) {
  const share = percent(part, whole);
  return html`<div class="progress">
    <div class="track" role="progressbar" aria-label=${label} aria-valuenow=${share} aria-valuemin="0" aria-valuemax="100"><span style=${{ width: `${share}%` }}></span></div>
    <span class="num">${number(share)} %</span>
  </div>`;
}

/** A button that copies a text and says so. */
export function Copy({ text, label }) {
  const [done, setDone] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  }
  return html`<button type="button" class="bare copy" onClick=${copy} aria-label=${label} title=${label}>
    <${Icon} name=${done ? 'check' : 'copy'} size=${15} /><span class="sr" aria-live="polite">${done ? t('copied') : ''}</span>
  </button>`;
}

/** A person's picture, or his letters where there is none. */
export const Avatar = ({ name, url, size = 'm' }) => html`<span class=${`avatar ${size}`} aria-hidden="true">${url ? html`<img src=${url} alt="" />` : initials(name)}</span>`;

/**
 * A table that becomes a list of cards on a narrow screen.
 * @param {{caption: string, columns: {key: string, label: string, cell: (row: any) => any, sort?: string, num?: boolean, minor?: boolean}[], rows: any[], sort?: string, onSort?: (sort: string) => void, link?: (row: any) => string}} props
 *   sort is a field name, with - in front for descending; link makes the first cell of a row a link; a
 *   minor column is left out on a narrow screen.
 */
export function Table({ caption, columns, rows, sort = '', onSort, link }) {
  const field = sort.replace(/^-/, '');
  return html`<div class="table-box" ...${link ? {} : { tabindex: 0, role: 'group', 'aria-label': caption }}><table class="data">
    <caption class="sr">${caption}</caption>
    <thead><tr>${columns.map((column) => {
      const sorted = column.sort && column.sort === field;
      const direction = sorted ? (sort.startsWith('-') ? 'descending' : 'ascending') : undefined;
      return html`<th key=${column.key} scope="col" class=${`${column.num ? 'num' : ''}${column.minor ? ' minor' : ''}`} aria-sort=${direction}>
        ${column.sort && onSort
          ? html`<button class="bare sort" onClick=${() => onSort(sorted && !sort.startsWith('-') ? `-${column.sort}` : column.sort)}>${column.label}${sorted && html`<${Icon} name=${direction === 'ascending' ? 'up' : 'down'} size=${12} />`}</button>`
          : column.label || html`<span class="sr">${t('table.actions')}</span>`}
      </th>`;
    })}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${link ? 'linked' : ''}>${columns.map((column, i) => html`<td key=${column.key} class=${`${column.num ? 'num' : ''}${column.minor ? ' minor' : ''}`} data-label=${column.label}>
      ${i === 0 && link ? html`<a class="row-link" href=${link(row)}>${column.cell(row)}</a>` : column.cell(row)}
    </td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Where in a long list one is, and the way on. */
export function Pager({ offset, limit, total, onMove }) {
  if (total <= limit && offset === 0) return html`<p class="pager fine">${t('pager.total', { n: total, total: number(total) })}</p>`;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pager" aria-label=${t('pager.label')}>
    <span class="fine">${t('pager.range', { from: number(total ? offset + 1 : 0), to: number(last), total: number(total) })}</span>
    <button class="quiet small" disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - limit))}><${Icon} name="left" size=${14} />${t('pager.back')}</button>
    <button class="quiet small" disabled=${last >= total} onClick=${() => onMove(offset + limit)}>${t('pager.on')}<${Icon} name="right" size=${14} /></button>
  </nav>`;
}
