import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { customersOf, fullName } from '../customers.js';
import { may, useRights } from '../access.js';
import { country } from '../countries.js';
import { dateTime } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePrefs } from '../prefs.js';
import { route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Copy, Facts, Pager, Table } from '../ui/data.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, useAction } from '../ui/feedback.js';
import { Filter, Filters, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { PayerDialog } from './payer_form.js';

const LIMIT = 20;
const stateOf = (payer) => html`<${Badge} group="active" value=${payer.active ? 'active' : 'inactive'} />`;

const columns = (customers) => [
  { key: 'name', label: t('field.name'), cell: (row) => html`<span class="with-avatar"><${Avatar} name=${row.company || row.name} size="s" /><span class="two-lines"><span>${row.company || row.name}</span><span class="mail">${[row.company && row.name, row.email].filter(Boolean).join(' · ')}</span></span></span>` },
  { key: 'customer', label: t('payers.pays_for'), cell: (row) => (customers[row.customer_id] ? html`<a href=${`/customers/${row.customer_id}`}>${fullName(customers[row.customer_id])}</a>` : html`<span class="none">–</span>`) },
  { key: 'country', label: t('field.country'), cell: (row) => country(row.country) },
  { key: 'active', label: t('field.state'), cell: stateOf },
];

// The payers have a list shape of their own: other parameters, other members than the shared lists.
function PayerList() {
  const { query } = useStore(route);
  const [company, code, active, offset] = [query.get('company') ?? '', query.get('country') ?? '', query.get('active') ?? '', Math.max(0, Number(query.get('offset')) || 0)];
  const wanted = { limit: LIMIT, offset, company, active, country: /^[A-Z]{3}$/.test(code) ? code : '' };
  const load = useLoad(async () => {
    const page = await api.get('/v1/payers', wanted);
    return { ...page, customers: await customersOf(page.payers) };
  }, [JSON.stringify(wanted)]);
  const set = (changes) => setQuery({ offset: '', ...changes });
  const create = may('payers', 'create') && html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('payers.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.payers')} note=${t('payers.note')}>${create}<//>
    <${Filters}>
      <${Search} label=${t('payers.search')} value=${company} onSearch=${(value) => set({ company: value })} />
      <div class="filter"><label for="payer-country">${t('field.country')}</label><input id="payer-country" class="code" size="4" value=${code} maxlength="3" placeholder="CHE" onInput=${(event) => set({ country: event.target.value.toUpperCase() })} /></div>
      <${Filter} label=${t('field.state')} value=${active} options=${[['true', t('active.active')], ['false', t('active.inactive')]]} onChange=${(value) => set({ active: value })} />
    <//>
    <section class="card flush" aria-label=${t('nav.payers')}>
      <${Loaded} load=${load} lines=${8}>${(page) => (page.payers.length
        ? html`<${Table} caption=${t('nav.payers')} columns=${columns(page.customers)} rows=${page.payers} link=${(row) => `/payers/${row.id}`} />
            <${Pager} offset=${offset} limit=${LIMIT} total=${page.total} onMove=${(to) => setQuery({ offset: to || '' })} />`
        : company || code || active
          ? html`<${Empty} icon="search" title=${t('list.no_match')} action=${html`<button class="quiet" onClick=${() => set({ company: '', country: '', active: '' })}>${t('list.clear')}</button>`}>${t('list.no_match_text')}<//>`
          : html`<${Empty} icon="payers" title=${t('payers.none')} action=${create}>${t('payers.none_text')}<//>`)}<//>
    </section>
    ${query.get('new') && may('payers', 'create') && html`<${PayerDialog} close=${() => setQuery({ new: '' })} done=${() => { setQuery({ new: '' }); load.reload(); toast(t('saved')); }} />`}`;
}

function Payer({ id }) {
  usePrefs();
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.tagged(`/v1/payers/${id}`), [id]);
  const payer = load.data?.record;
  const customer = useLoad(() => (payer ? api.get(`/v1/customers/${payer.customer_id}`).catch(() => null) : null), [payer?.customer_id]);
  const rights = useRights('payers', id);
  const end = useAction(async () => {
    if (!(await confirm({ title: t('payers.end'), text: t('payers.end_text', { name: payer.name || payer.company }), action: t('payers.end') }))) return;
    await api.delete(`/v1/payers/${id}`);
    load.reload();
    toast(t('saved'));
  });
  return html`
    <${PageHead} title=${payer ? payer.name || payer.company : t('payers.one')} back=${['/payers', t('nav.payers')]} note=${payer && stateOf(payer)}>
      ${payer && rights.delete && payer.active && html`<button class="quiet danger" disabled=${end.busy} onClick=${end.run}>${t('payers.end')}</button>`}
      ${payer && rights.update && html`<button class="quiet" onClick=${() => setEditing(true)}><${Icon} name="edit" size=${16} />${t('do.edit')}</button>`}
    <//>
    <${Loaded} load=${load}>${() => html`<${Card}><${Facts} rows=${[
      [t('field.name'), payer.name], [t('field.company'), payer.company], [t('field.email'), payer.email], [t('field.country'), country(payer.country)],
      [t('customers.one'), html`<a href=${`/customers/${payer.customer_id}`}>${customer.data ? fullName(customer.data) : t('customers.open')}</a>`],
      [t('field.created_at'), dateTime(payer.created_at)], [t('field.updated_at'), dateTime(payer.modified_at)],
      [t('field.id'), html`<span class="code">${payer.id}</span><${Copy} text=${payer.id} label=${t('copy.id')} />`],
    ]} /><//>`}<//>
    ${editing && html`<${PayerDialog} payer=${payer} etag=${load.data.etag} close=${() => setEditing(false)} done=${() => { setEditing(false); load.reload(); toast(t('saved')); }} />`}`;
}

/** The payers, or one of them. */
export default ({ id }) => (id ? html`<${Payer} id=${id} />` : html`<${PayerList} />`);
