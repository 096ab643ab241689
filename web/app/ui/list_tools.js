import { html, useState } from '../lib.js';
import { CALL, isClient, mayCall } from '../access.js';
import { api } from '../api.js';
import { downloadFile } from '../download.js';
import { t } from '../i18n.js';
import { viewQuery } from '../list_settings.js';
import { useLoad } from '../load.js';
import { go, route } from '../router.js';
import { store, useStore } from '../store.js';
import { Loaded, toast, toastError, useAction } from './feedback.js';
import { Icon } from './icon.js';
import { Menu } from './menu.js';
import { Tabs } from './page.js';

/** The columns that a list shows, in their own order; at least the first one, which links to the record. */
export const shownColumns = (columns, keys) => (keys
  ? columns.filter((column, i) => i === 0 || !column.label || keys.includes(column.key))
  : columns);

/** The choice of columns. */
function Columns({ list, columns }) {
  const choices = columns.slice(1).filter((column) => column.label);
  if (!choices.length) return null;
  const isShown = (key) => !list.columns || list.columns.includes(key);
  const toggle = (key) => {
    const keys = choices.map((column) => column.key).filter((one) => isShown(one) !== (one === key));
    list.setColumns(keys.length === choices.length ? null : [columns[0].key, ...keys]);
  };
  return html`<${Menu} label=${t('list.columns')} icon="columns">${() => html`
    ${choices.map(({ key, label }) => html`<label key=${key} class="menu-item">
      <input type="checkbox" checked=${isShown(key)} onChange=${() => toggle(key)} />${label}
    </label>`)}
    ${list.columns && html`<button class="bare small" onClick=${() => list.setColumns(null)}>${t('list.all_columns')}</button>`}`}<//>`;
}

const changes = store(0); // counts the changes of saved views, which the tabs and the menu both show
const viewsChanged = () => changes.set((n) => n + 1);

/** Loads the views of a list that the user has saved. */
function useViews(screen) {
  const n = useStore(changes);
  return useLoad(() => (mayCall(CALL.views)
    ? api.get('/v1/profile/views', { limit: 100, sort: 'name', 'search.list': screen }) : { data: [] }), [screen, n]);
}

const sorted = (query) => [...new URLSearchParams(query)].filter(([name]) => name !== 'offset').sort().join('&');

/** The saved views of a list as tabs above it, after the list without filters. */
export function ViewTabs({ list }) {
  const { path: screen, query } = useStore(route);
  const views = useViews(screen).data?.data ?? [];
  if (!views.length || !list.setColumns) return null;
  const now = [sorted(query), sorted(viewQuery(list))];
  const current = views.find((view) => now.includes(sorted(view.query)));
  return html`<${Tabs} label=${t('list.views')} current=${current ? `${screen}?${current.query}` : list.filtered ? '' : screen}
    tabs=${[[screen, t('list.all')], ...views.map((view) => [`${screen}?${view.query}`, view.name])]} />`;
}

function View({ view, close, removed }) {
  const { path } = useStore(route);
  const open = () => {
    close();
    go(`${path}?${view.query}`);
  };
  const remove = () => api.delete(`/v1/profile/views/${view.id}`).then(removed, toastError);
  return html`<li class="menu-item">
    <button class="bare grow" onClick=${open}><bdi>${view.name}</bdi></button>
    <button class="bare" aria-label=${t('list.remove_view', { name: view.name })} onClick=${remove}>
      <${Icon} name="close" size=${14} />
    </button>
  </li>`;
}

const MAX_NAME = 60; // characters

/** The views of this list that the user has saved, and a form that saves the present one. */
function SavedViews({ list, screen, close }) {
  const [name, setName] = useState('');
  const load = useViews(screen);
  const save = useAction(async (event) => {
    event.preventDefault();
    await api.put('/v1/profile/views', { list: screen, name: name.trim(), query: viewQuery(list) });
    setName('');
    viewsChanged();
    toast(t('saved'));
  });
  return html`
    <${Loaded} load=${load} lines=${2}>${({ data }) => (data.length
      ? html`<ul>${data.map((view) => html`<${View} key=${view.id} view=${view} close=${close} removed=${viewsChanged} />`)}</ul>`
      : html`<p class="fine">${t('list.no_views')}</p>`)}<//>
    <form class="menu-form" onSubmit=${save.run}>
      <input aria-label=${t('list.view_name')} placeholder=${t('list.view_name')} maxlength=${MAX_NAME} required value=${name}
        onInput=${(event) => setName(event.target.value)} />
      <button class="small" disabled=${save.busy}>${t('do.save')}</button>
    </form>`;
}

/** Copies the address of the list as it is shown. */
function CopyLink({ list, screen }) {
  const copy = async () => {
    await navigator.clipboard.writeText(`${location.origin}${screen}?${viewQuery(list)}`);
    toast(t('copied'));
  };
  return html`<button class="bare small" onClick=${() => copy().catch(toastError)}>
    <${Icon} name="link" size=${14} />${t('list.copy_link')}
  </button>`;
}

/** Downloads all rows that the filters select, as a table for spreadsheets. */
function Export({ list, screen }) {
  const name = `${screen.split('/').filter(Boolean).pop() ?? 'list'}.csv`;
  const { busy, run } = useAction(() => downloadFile(list.path, name, { query: list.selected, headers: { Accept: 'text/csv; bom=true' } }));
  return html`<button class="quiet small" disabled=${busy} aria-busy=${busy ? 'true' : undefined} onClick=${run}>
    <${Icon} name="download" size=${14} />${t('list.export')}
  </button>`;
}

/**
 * The tools of a list: saved views, columns, export and print. Customers of the bank get none: their lists are short.
 * @param {{list: ReturnType<import('../list.js').useList>, columns?: any[], children?: any}} props
 *   children: before the tools, such as the actions for selected rows
 */
export function ListTools({ list, columns = [], children }) {
  const { path: screen } = useStore(route);
  if (isClient()) return null;
  return html`<div class="list-tools" role="toolbar" aria-label=${t('list.tools')}>
    ${children}<span class="grow"></span>
    ${list.setColumns && html`<${Menu} label=${t('list.views')} icon="bookmark">${(close) => html`
      <${SavedViews} list=${list} screen=${screen} close=${close} /><${CopyLink} list=${list} screen=${screen} />`}<//>
      <${Columns} list=${list} columns=${columns} />`}
    ${list.path && html`<${Export} list=${list} screen=${screen} />`}
    <button class="quiet small" onClick=${() => window.print()}><${Icon} name="print" size=${14} />${t('list.print')}</button>
  </div>`;
}
