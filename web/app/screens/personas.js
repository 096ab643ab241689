import { html } from '../lib.js';
import { api } from '../api.js';
import { may, myId } from '../access.js';
import { country } from '../countries.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { anywhere, useList } from '../list.js';
import { usePrefs } from '../prefs.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Pager, Table } from '../ui/data.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Filter, Filters, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { PersonaDialog, personaName } from './persona_form.js';

const columns = () => [
  { key: 'name', label: t('field.name'), sort: 'last_name', cell: (row) => html`<span class="with-avatar"><${Avatar} name=${personaName(row)} size="s" /><span>${personaName(row)}</span></span>` },
  { key: 'born', label: t('field.date_of_birth'), sort: 'date_of_birth', cell: (row) => date(row.date_of_birth) },
  { key: 'died', minor: true, label: t('field.date_of_death'), cell: (row) => date(row.date_of_death) || html`<span class="none">–</span>` },
  { key: 'nationality', label: t('field.nationality'), sort: 'nationality', cell: (row) => country(row.nationality) },
  { key: 'active', label: t('field.state'), cell: (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />` },
];

/** Personas that somebody says are the caller: they count only once the caller has accepted them. */
function Offers({ changed }) {
  const load = useLoad(async () => (await api.get('/v1/profile/personas', { limit: 100 })).data.filter((one) => one.status === 'pending'));
  async function answer(run) {
    try {
      await run();
      toast(t('saved'));
      changed();
    } catch (error) {
      toastError(error);
    }
    load.reload();
  }
  if (!load.data?.length) return null;
  const path = (one) => `/v1/personas/${one.persona_id}/users/${myId()}`;
  return html`<${Card} title=${t('personas.offers')}><p>${t('personas.offers_text')}</p>
    <ul class="items">${load.data.map((one) => html`<li key=${one.id}><span class="grow two-lines"><span><bdi>${personaName(one)}</bdi></span><span>${date(one.date_of_birth)}</span></span>
      <button class="quiet small" aria-label=${`${t('personas.reject')}: ${personaName(one)}`} onClick=${() => answer(() => api.delete(path(one)))}>${t('personas.reject')}</button>
      <button class="small" aria-label=${`${t('personas.accept')}: ${personaName(one)}`} onClick=${() => answer(() => api.post(`${path(one)}/accept`))}>${t('personas.accept')}</button></li>`)}</ul><//>`;
}

/** All personas the caller may see. */
export default function Personas() {
  usePrefs();
  const { query } = useStore(route);
  const list = useList('/v1/personas', { filters: ['active'], sort: 'last_name', search: (text, field) => ({ [`search.${field || 'last_name'}`]: anywhere(text) }) });
  const mayCreate = may('personas', 'create');
  const create = mayCreate && html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('personas.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.personas')} note=${t('personas.note')}>${create}<//>
    <${Offers} changed=${list.reload} />
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
