import { html } from '../lib.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { anywhere, useList } from '../list.js';
import { usePrefs } from '../prefs.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Pager, Table } from '../ui/data.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Filter, Filters, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { PersonaDialog, personaName } from './persona_form.js';

const columns = () => [
  { key: 'name', label: t('field.name'), sort: 'last_name', cell: (row) => html`<span class="with-avatar"><${Avatar} name=${personaName(row)} size="s" /><span>${personaName(row)}</span></span>` },
  { key: 'born', label: t('field.date_of_birth'), sort: 'date_of_birth', cell: (row) => date(row.date_of_birth) },
  { key: 'died', minor: true, label: t('field.date_of_death'), cell: (row) => date(row.date_of_death) || html`<span class="none">–</span>` },
  { key: 'nationality', label: t('field.nationality'), sort: 'nationality', cell: (row) => country(row.nationality) },
  { key: 'active', label: t('field.state'), cell: (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />` },
];

/** All personas the caller may see. */
export default function Personas() {
  usePrefs();
  const { query } = useStore(route);
  const list = useList('/v1/personas', { filters: ['active'], sort: 'last_name', search: (text, field) => ({ [`search.${field || 'last_name'}`]: anywhere(text) }) });
  const mayCreate = may('personas', 'create');
  const create = mayCreate && html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('personas.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.personas')} note=${t('personas.note')}>${create}<//>
    <${Filters}>
      <${Search} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('list.in')} value=${list.state.in} all=${null} options=${['last_name', 'first_name', 'nationality'].map((name) => [name, t(`field.${name}`)])} onChange=${(value) => list.set({ in: value })} />
      <${Filter} label=${t('field.state')} value=${list.state.active} options=${[['true', t('active.active')], ['false', t('active.inactive')]]} onChange=${(value) => list.set({ active: value })} />
    <//>
    <section class="card flush" aria-label=${t('nav.personas')}>
      <${Loaded} load=${list} lines=${8}>${(page) => (page.data.length
        ? html`<${Table} caption=${t('nav.personas')} columns=${columns()} rows=${page.data} sort=${list.state.sort} onSort=${(sort) => list.set({ sort })} link=${(row) => `/personas/${row.id}`} />
            <${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
        : list.filtered
          ? html`<${Empty} icon="search" title=${t('list.no_match')} action=${html`<button class="quiet" onClick=${list.clear}>${t('list.clear')}</button>`}>${t('list.no_match_text')}<//>`
          : html`<${Empty} icon="personas" title=${t('personas.none')} action=${create}>${t('personas.none_text')}<//>`)}<//>
    </section>
    ${query.get('new') && mayCreate && html`<${PersonaDialog} close=${() => setQuery({ new: '' })} done=${(made) => go(`/personas/${made.id}`)} />`}`;
}
