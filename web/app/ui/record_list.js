import { html } from '../lib.js';
import { t } from '../i18n.js';
import { Empty, Loaded } from './feedback.js';
import { Pager, Table } from './table.js';

/** The message of a list whose filters match nothing, with a button that clears them. */
export const NoMatch = ({ clear }) => html`<${Empty} icon="search" title=${t('list.no_match')}
  action=${clear && html`<button class="quiet" onClick=${clear}>${t('list.clear')}</button>`}>${clear && t('list.no_match_text')}<//>`;

/**
 * A list of records as a table with a pager.
 * @param {{list: ReturnType<import('../list.js').useList>, title: string, columns: any[], link?: (row: any) => string,
 *   rowsOf?: (page: any) => any[], empty?: any, lines?: number}} props
 *   empty: what to show when there are no records at all; rowsOf: the rows of a page, by default its data
 */
export function RecordList({ list, title, columns, link, empty, rowsOf = (page) => page.data, lines = 8 }) {
  const sorting = { sort: list.state.sort, onSort: (sort) => list.set({ sort }) };
  const nothing = () => (list.filtered ? html`<${NoMatch} clear=${list.clear} />` : empty ?? html`<${NoMatch} />`);
  return html`<section class="card flush" aria-label=${title}>
    <${Loaded} load=${list} lines=${lines}>${(page) => {
      const rows = rowsOf(page);
      return rows.length
        ? html`<${Table} caption=${title} columns=${columns} rows=${rows} link=${link} ...${sorting} />
            <${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
        : nothing();
    }}<//>
  </section>`;
}
