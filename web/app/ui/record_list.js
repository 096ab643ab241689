import { html } from '../lib.js';
import { useAddress } from '../address.js';
import { t } from '../i18n.js';
import { useNewRows } from '../record_changes.js';
import { Empty, Loaded } from './feedback.js';
import { ListTools, shownColumns, ViewTabs } from './list_tools.js';
import { BulkActions, useSelection } from './selection.js';
import { Pager, Table } from './table.js';

/** The message of a list whose filters match nothing, with a button that clears them. */
export const NoMatch = ({ clear }) => html`<${Empty} icon="search" title=${t('list.no_match')}
  action=${clear && html`<button class="quiet" onClick=${clear}>${t('list.clear')}</button>`}>${clear && t('list.no_match_text')}<//>`;

/** Says that rows have arrived since the list was loaded; they are not pushed below the pointer of the user. */
function NewRows({ list, live }) {
  const n = useNewRows(list, live);
  const show = () => {
    list.move(0);
    list.reload();
  };
  return html`<div class="new-rows" role="status">
    ${n > 0 && html`<button class="quiet small" onClick=${show}>${t('list.new_rows', { n })}</button>`}
  </div>`;
}

/**
 * A list of records as a table with a pager.
 * @param {{list: ReturnType<import('../list.js').useList>, title: string, columns: any[], link?: (row: any) => string,
 *   rowsOf?: (page: any) => any[], empty?: any, lines?: number, bulk?: any[], nameOf?: (row: any) => string, tools?: boolean,
 *   live?: string}} props
 *   empty: what to show when there are no records at all; rowsOf: the rows of a page, by default its data; bulk: actions for
 *   selected rows, see BulkActions; nameOf: a row's name for screen readers; tools: false leaves out views, columns and export; live: the
 *   events that may add a row, see useNewRows
 */
export function RecordList({
  list, title, columns, link, empty, rowsOf = (page) => page.data, lines = 8, bulk = [], nameOf, tools = true, live,
}) {
  const { beside } = useAddress();
  const rows = list.data === undefined ? [] : rowsOf(list.data);
  const selection = useSelection(rows, nameOf);
  const sorting = { sort: list.state.sort, onSort: (sort) => list.set({ sort }) };
  const nothing = () => (list.filtered ? html`<${NoMatch} clear=${list.clear} />` : empty ?? html`<${NoMatch} />`);
  const pager = (page) => html`<${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move}
    onSize=${beside ? undefined : list.setLimit} short=${beside} />`;
  const shown = beside ? columns.filter((column, i) => i === 0 || column.beside) : shownColumns(columns, list.columns);
  return html`<section class="card flush" aria-label=${title}>
    ${tools && !beside && html`<${ViewTabs} list=${list} /><${ListTools} list=${list} columns=${columns}>
      ${bulk.length > 0 && html`<${BulkActions} selection=${selection} actions=${bulk} done=${list.reload} />`}<//>`}
    ${live && !beside && html`<${NewRows} key=${list.path} list=${list} live=${live} />`}
    <${Loaded} load=${list} lines=${lines}>${(page) => {
      if (!rows.length) return page.total > 0 && list.state.offset > 0 ? pager(page) : nothing();
      return html`<${Table} caption=${title} columns=${shown} rows=${rows} link=${link}
        selection=${bulk.length > 0 && !beside ? selection : undefined} ...${sorting} />${pager(page)}`;
    }}<//>
  </section>`;
}
