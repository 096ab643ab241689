import { html, useEffect, useLayoutEffect, useState } from '../lib.js';
import { SIZES } from '../list_settings.js';
import { t } from '../i18n.js';
import { number } from '../format.js';
import { route } from '../router.js';
import { useStore } from '../store.js';
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

/** The box that selects all rows of the page; it is half checked when some are. */
function SelectAll({ rows, selection }) {
  const n = rows.filter((row) => selection.has(row)).length;
  const all = n > 0 && n === rows.length;
  return html`<th scope="col" class="select"><label>
    <input type="checkbox" aria-label=${t('list.select_all')} checked=${all} indeterminate=${n > 0 && !all}
      onChange=${() => selection.toggleAll(!all)} />
  </label></th>`;
}

const SelectRow = ({ row, selection }) => html`<td class="select"><label>
  <input type="checkbox" aria-label=${t('list.select_row', { name: selection.nameOf(row) })} checked=${selection.has(row)}
    onClick=${(event) => selection.toggle(row, event.shiftKey)} />
</label></td>`;

/**
 * A table that becomes a list of cards on a narrow screen.
 * @param {{caption: string, columns: {key: string, label: string, cell: (row: any) => any, sort?: string, num?: boolean,
 *   minor?: boolean, wide?: boolean}[], rows: any[], sort?: string, onSort?: (sort: string) => void,
 *   link?: (row: any) => string, selection?: ReturnType<import('./selection.js').useSelection>}} props
 *   sort: a field name, with - in front for descending; link: makes the first cell of a row a link. A minor column is
 *   hidden on a narrow screen, a wide one on a medium screen too.
 */
export function Table({ caption, columns, rows, sort = '', onSort, link, selection }) {
  const scrollable = link ? {} : { tabindex: 0, role: 'group', 'aria-label': caption };
  const { path } = useStore(route);
  const isOpen = (href) => `${path}/`.startsWith(`${href.split('?')[0]}/`);
  const cell = (column, row, i) => (i === 0 && link
    ? html`<a class="row-link" href=${link(row)} aria-current=${isOpen(link(row)) ? 'page' : undefined}>${column.cell(row)}</a>`
    : column.cell(row));
  return html`<div class="table-box" ...${scrollable}><table class="data">
    <caption class="sr">${caption}</caption>
    <thead><tr>
      ${selection && html`<${SelectAll} rows=${rows} selection=${selection} />`}
      ${columns.map((column) => html`<${Heading} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}
    </tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${link ? 'linked' : ''} data-selected=${selection?.has(row) || undefined}>
      ${selection && html`<${SelectRow} row=${row} selection=${selection} />`}
      ${columns.map((column, i) => html`
        <td key=${column.key} class=${classOf(column)} data-label=${column.label}>${cell(column, row, i)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

/** A field for the number of a page. */
function PageField({ page, pages, onPage }) {
  const [typed, setTyped] = useState(page);
  useLayoutEffect(() => setTyped(page), [page]); // A later effect could undo what was typed since.
  const jump = () => {
    const wanted = Math.min(pages, Math.max(1, Math.round(Number(typed)) || page));
    setTyped(wanted);
    if (wanted !== page) onPage(wanted);
  };
  const onKeyDown = (event) => event.key === 'Enter' && jump();
  return html`<label class="pager-page">${t('pager.page')}
    <input type="number" inputmode="numeric" min="1" max=${pages} value=${typed} onInput=${(event) => setTyped(event.target.value)}
      onKeyDown=${onKeyDown} onBlur=${jump} />
    <span>${t('pager.of', { pages: number(pages) })}</span>
  </label>`;
}

/** The choice of the rows of a page. */
const PageSize = ({ limit, onSize }) => html`<label class="pager-size">${t('pager.size')}
  <select value=${limit} onChange=${(event) => onSize(Number(event.target.value))}>
    ${[...new Set([...SIZES, limit])].sort((a, b) => a - b).map((size) => html`
      <option key=${size} value=${size} selected=${size === limit}>${size}</option>`)}
  </select>
</label>`;

/**
 * The position in a paged list, with buttons for the previous and the next page. A position beyond the end leads to the last
 * page.
 * @param {{offset: number, limit: number, total: number, onMove: (offset: number, options?: {replace: boolean}) => void,
 *   onSize?: (limit: number) => void, short?: boolean}} props onSize: absent where the user may not choose the rows of a page;
 *   short: without the number of the page
 */
export function Pager({ offset, limit, total, onMove, onSize, short }) {
  const pages = Math.max(1, Math.ceil(total / limit));
  const beyond = total > 0 && offset >= total;
  useEffect(() => {
    if (beyond) onMove((pages - 1) * limit, { replace: true });
  }, [beyond]);
  const size = onSize && total > SIZES[0] && html`<${PageSize} limit=${limit} onSize=${onSize} />`;
  if (total <= limit && offset === 0) {
    return html`<div class="pager"><span class="fine">${t('pager.total', { n: total, total: number(total) })}</span>${size}</div>`;
  }
  const last = Math.min(offset + limit, total);
  const range = { from: number(total ? offset + 1 : 0), to: number(last), total: number(total) };
  return html`<nav class="pager" aria-label=${t('pager.label')}>
    <span class="fine">${t('pager.range', range)}</span>
    ${size}
    ${!short && html`<${PageField} page=${Math.floor(offset / limit) + 1} pages=${pages} onPage=${(page) => onMove((page - 1) * limit)} />`}
    <button class="quiet small" disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - limit))}>
      <${Icon} name="left" size=${14} />${t('pager.previous')}
    </button>
    <button class="quiet small" disabled=${last >= total} onClick=${() => onMove(offset + limit)}>
      ${t('pager.next')}<${Icon} name="right" size=${14} />
    </button>
  </nav>`;
}
