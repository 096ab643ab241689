import { html } from '../lib.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { byWords, useList } from '../list.js';
import { myId } from '../people.js';
import { usePreferences } from '../preferences.js';
import { go } from '../router.js';
import { Avatar, Badge, Dash } from '../ui/display.js';
import { Empty, toast, toastError } from '../ui/feedback.js';
import { Filter, Filters, optionsOf, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { RecordList } from '../ui/record_list.js';
import { PersonaDialog, personaName } from './persona_form.js';

const Name = ({ persona }) => html`<span class="with-avatar">
  <${Avatar} name=${personaName(persona)} size="s" /><span>${personaName(persona)}</span>
</span>`;

const state = (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />`;

const columns = () => [
  { key: 'name', label: t('field.name'), sort: 'last_name', cell: (row) => html`<${Name} persona=${row} />` },
  { key: 'born', label: t('field.date_of_birth'), sort: 'date_of_birth', cell: (row) => date(row.date_of_birth) },
  { key: 'died', minor: true, label: t('field.date_of_death'), cell: (row) => date(row.date_of_death) || html`<${Dash} />` },
  { key: 'nationality', label: t('field.nationality'), sort: 'nationality', cell: (row) => country(row.nationality) },
  { key: 'active', beside: true, label: t('field.state'), cell: state },
];

function Proposal({ persona, answer }) {
  const path = `/v1/personas/${persona.persona_id}/users/${myId()}`;
  const name = personaName(persona);
  const button = (key, style, action) => html`<button class=${style} aria-label=${`${t(key)}: ${name}`} onClick=${() => answer(action)}>
    ${t(key)}
  </button>`;
  return html`<li>
    <span class="grow two-lines"><span><bdi>${name}</bdi></span><span>${date(persona.date_of_birth)}</span></span>
    ${button('personas.reject', 'quiet small', () => api.delete(path))}
    ${button('personas.accept', 'small', () => api.post(`${path}/accept`))}
  </li>`;
}

/** Personas that another user linked to the caller; a link takes effect only after the caller has accepted it. */
function Proposals({ changed }) {
  const load = useLoad(async () => {
    const { data } = await api.get('/v1/profile/personas', { limit: 100 });
    return data.filter((one) => one.status === 'pending');
  });
  async function answer(action) {
    try {
      await action();
      toast(t('saved'));
      changed();
    } catch (error) {
      toastError(error);
    }
    load.reload();
  }
  if (!load.data?.length) return null;
  return html`<${Card} title=${t('personas.proposals')}>
    <p>${t('personas.proposals_text')}</p>
    <ul class="items">${load.data.map((one) => html`<${Proposal} key=${one.id} persona=${one} answer=${answer} />`)}</ul>
  <//>`;
}

/** The personas that the caller may see. */
export default function Personas() {
  usePreferences();
  const { query, set } = useAddress();
  const list = useList('/v1/personas', {
    filters: ['active'], sort: 'last_name', search: byWords,
  });
  const mayCreate = may('personas', 'create');
  const create = mayCreate && html`<button onClick=${() => set({ new: 1 })}>
    <${Icon} name="plus" size=${16} />${t('personas.new')}
  </button>`;
  const fields = optionsOf(['last_name', 'first_name', 'nationality'], (name) => t(`field.${name}`));
  const close = () => set({ new: '' });
  return html`
    <${PageHead} title=${t('nav.personas')} note=${t('personas.note')}>${create}<//>
    <${Proposals} changed=${list.reload} />
    <${Filters}>
      <${Search} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('list.in')} value=${list.state.in} all=${null} options=${fields}
        onChange=${(value) => list.set({ in: value })} />
      <${Filter} label=${t('field.state')} value=${list.state.active} onChange=${(active) => list.set({ active })}
        options=${[['true', t('active.active')], ['false', t('active.inactive')]]} />
    <//>
    <${RecordList} list=${list} title=${t('nav.personas')} columns=${columns()} link=${(row) => `/personas/${row.id}`}
      live="personas.created"
      empty=${html`<${Empty} icon="personas" title=${t('personas.none')} action=${create}>${t('personas.none_text')}<//>`} />
    ${query.get('new') && mayCreate && html`<${PersonaDialog} close=${close} done=${(made) => go(`/personas/${made.id}`)} />`}`;
}
