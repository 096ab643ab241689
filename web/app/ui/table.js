import { html } from '../lib.js';
import { t } from '../i18n.js';
import { number } from '../format.js';
import { Icon } from './icon.js';

const classOf = (column) => [column.num && 'num', column.minor && 'minor', column.wide && 'wide'].filter(Boolean).join(' ');

/** The heading of a column: a button where the list can be sorted by it. */
function Heading({ column, sort, onSort }) {
  const sorted = Boolean(column.sort) && column.sort === sort.replace(/^-/, '');
  const descending = sorted && sort.startsWith('-');
  const direction = sorted ? (descending ? 'descending' : 'ascending') : undefined;
  const toggle = () => onSort(sorted && !descending ? `-${column.sort}` : column.sort);
  return html`<th scope="col" class=${classOf(column)} aria-sort=${direction}>
    ${column.sort && onSort
      ? html`<button class="bare sort" onClick=${toggle}>
          ${column.label}${sorted && html`<${Icon} name=${descending ? 'down' : 'up'} size=${12} />`}
        </button>`
      : column.label || html`<span class="sr">${t('table.actions')}</span>`}
  </th>`;
}

/**
 * A table that becomes a list of cards on a narrow screen.
 * @param {{caption: string, columns: {key: string, label: string, cell: (row: any) => any, sort?: string, num?: boolean,
 *   minor?: boolean, wide?: boolean}[], rows: any[], sort?: string, onSort?: (sort: string) => void,
 *   link?: (row: any) => string}} props
 *   sort: a field name, with - in front for descending; link: makes the first cell of a row a link. A minor column is
 *   hidden on a narrow screen, a wide one on a medium screen too.
 */
export function Table({ caption, columns, rows, sort = '', onSort, link }) {
  const scrollable = link ? {} : { tabindex: 0, role: 'group', 'aria-label': caption };
  const cell = (column, row, i) => (i === 0 && link
    ? html`<a class="row-link" href=${link(row)}>${column.cell(row)}</a>`
    : column.cell(row));
  return html`<div class="table-box" ...${scrollable}><table class="data">
    <caption class="sr">${caption}</caption>
    <thead><tr>
      ${columns.map((column) => html`<${Heading} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}
    </tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${link ? 'linked' : ''}>
      ${columns.map((column, i) => html`
        <td key=${column.key} class=${classOf(column)} data-label=${column.label}>${cell(column, row, i)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

/** The position in a paged list, with buttons for the previous and the next page. */
export function Pager({ offset, limit, total, onMove }) {
  if (total <= limit && offset === 0) {
    return html`<p class="pager fine">${t('pager.total', { n: total, total: number(total) })}</p>`;
  }
  const last = Math.min(offset + limit, total);
  const range = { from: number(total ? offset + 1 : 0), to: number(last), total: number(total) };
  return html`<nav class="pager" aria-label=${t('pager.label')}>
    <span class="fine">${t('pager.range', range)}</span>
    <button class="quiet small" disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - limit))}>
      <${Icon} name="left" size=${14} />${t('pager.previous')}
    </button>
    <button class="quiet small" disabled=${last >= total} onClick=${() => onMove(offset + limit)}>
      ${t('pager.next')}<${Icon} name="right" size=${14} />
    </button>
  </nav>`;
}
