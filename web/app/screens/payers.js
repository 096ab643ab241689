import { html, useState } from '../lib.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { customersOf, fullName } from '../customers.js';
import { may, useRights } from '../access.js';
import { countries, country } from '../countries.js';
import { dateTime } from '../format.js';
import { t } from '../i18n.js';
import { useListSettings } from '../list_settings.js';
import { useLoad } from '../load.js';
import { usePreferences } from '../preferences.js';
import { useRecordChanges } from '../record_changes.js';
import { Avatar, Badge, Dash, Facts, RecordId } from '../ui/display.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, useAction } from '../ui/feedback.js';
import { Filter, Filters, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { RecordList } from '../ui/record_list.js';
import { WhoSees } from '../ui/who_sees.js';
import { PayerDialog } from './payer_form.js';

const LIMIT = 20;
const state = (payer) => html`<${Badge} group="active" value=${payer.active ? 'active' : 'inactive'} />`;

const Name = ({ payer }) => html`<span class="with-avatar">
  <${Avatar} name=${payer.company || payer.name} size="s" />
  <span class="two-lines">
    <span>${payer.company || payer.name}</span>
    <span class="mail">${[payer.company && payer.name, payer.email].filter(Boolean).join(' · ')}</span>
  </span>
</span>`;

function columnsOf(customers) {
  const customer = ({ customer_id: id }) => (customers[id]
    ? html`<a href=${`/customers/${id}`}>${fullName(customers[id])}</a>`
    : html`<${Dash} />`);
  return [
    { key: 'name', label: t('field.name'), cell: (row) => html`<${Name} payer=${row} />` },
    { key: 'customer', label: t('payers.pays_for'), cell: customer },
    { key: 'country', label: t('field.country'), cell: (row) => country(row.country) },
    { key: 'active', beside: true, label: t('field.state'), cell: state },
  ];
}

/** Loads the payers. Their list differs from all others in its parameters and members, so useList does not fit. */
function usePayers() {
  const { query, path: screen, set: setQuery } = useAddress();
  const { limit, ...settings } = useListSettings(screen, LIMIT);
  const get = (name) => query.get(name) ?? '';
  const filters = { q: get('q'), country: get('country'), active: get('active') };
  const offset = Math.max(0, Number(get('offset')) || 0);
  const isCode = /^[A-Z]{3}$/.test(filters.country);
  const selected = { ...filters, country: isCode ? filters.country : '' };
  const params = { limit, offset, ...selected };
  const load = useLoad(async () => {
    const page = await api.get('/v1/payers', params);
    return { ...page, customers: await customersOf(page.payers) };
  }, [JSON.stringify(params)]);
  const set = (changes) => setQuery({ offset: '', ...changes });
  return {
    ...load, limit, ...settings, path: '/v1/payers', selected, set,
    state: { ...filters, offset }, filtered: Object.values(filters).some(Boolean),
    move: (to, { replace = false } = {}) => setQuery({ offset: to || '' }, { replace }),
    clear: () => set({ q: '', country: '', active: '' }),
  };
}

function PayerFilters({ list }) {
  const { q, country: code, active } = list.state;
  return html`<${Filters}>
    <${Search} label=${t('payers.search')} value=${q} onSearch=${(value) => list.set({ q: value })} />
    <${Filter} label=${t('field.country')} value=${code} options=${countries(3, true)}
      onChange=${(value) => list.set({ country: value })} />
    <${Filter} label=${t('field.state')} value=${active} onChange=${(value) => list.set({ active: value })}
      options=${[['true', t('active.active')], ['false', t('active.inactive')]]} />
  <//>`;
}

/** The actions for selected payers. The server checks the right to each of them. */
const bulkActions = () => (may('payers', 'delete') ? [{
  key: 'deactivate', label: t('payers.deactivate'), danger: true, fits: (row) => row.active,
  each: (row) => api.delete(`/v1/payers/${row.id}`),
  confirm: (rows) => ({
    title: t('payers.deactivate'), text: t('payers.deactivate_selected', { n: rows.length }), action: t('payers.deactivate'),
  }),
}] : []);

function PayerList() {
  const { query, set } = useAddress();
  const list = usePayers();
  const mayCreate = may('payers', 'create');
  const create = mayCreate && html`<button onClick=${() => set({ new: 1 })}>
    <${Icon} name="plus" size=${16} />${t('payers.new')}
  </button>`;
  const close = () => set({ new: '' });
  const created = () => {
    close();
    list.reload();
    toast(t('saved'));
  };
  return html`
    <${PageHead} title=${t('nav.payers')} note=${t('payers.note')}>${create}<//>
    <${PayerFilters} list=${list} />
    <${RecordList} list=${list} title=${t('nav.payers')} columns=${columnsOf(list.data?.customers ?? {})} rowsOf=${(page) => page.payers}
      link=${(row) => `/payers/${row.id}`} bulk=${bulkActions()} nameOf=${(row) => row.company || row.name} live="payers.created"
      empty=${html`<${Empty} icon="payers" title=${t('payers.none')} action=${create}>${t('payers.none_text')}<//>`} />
    ${query.get('new') && mayCreate && html`<${PayerDialog} close=${close} done=${created} />`}`;
}

function Details({ payer }) {
  const customer = useLoad(() => api.get(`/v1/customers/${payer.customer_id}`).catch(() => null), [payer.customer_id]);
  const name = customer.data ? fullName(customer.data) : t('customers.open');
  return html`<${Card}><${Facts} rows=${[
    [t('field.name'), payer.name],
    [t('field.company'), payer.company],
    [t('field.email'), payer.email],
    [t('field.country'), country(payer.country)],
    [t('customers.one'), html`<a href=${`/customers/${payer.customer_id}`}>${name}</a>`],
    [t('field.created_at'), dateTime(payer.created_at)],
    [t('field.updated_at'), dateTime(payer.modified_at)],
    [t('field.id'), html`<${RecordId} id=${payer.id} />`],
  ]} /><//>`;
}

function Payer({ id }) {
  usePreferences();
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.withETag(`/v1/payers/${id}`), [id]);
  useRecordChanges('payers', id, load.reload);
  const payer = load.data?.record;
  const rights = useRights('payers', id);
  const name = payer?.name || payer?.company;
  const deactivate = useAction(async () => {
    const title = t('payers.deactivate');
    if (!(await confirm({ title, text: t('payers.deactivate_text', { name }), action: title }))) return;
    await api.delete(`/v1/payers/${id}`);
    load.reload();
    toast(t('saved'));
  });
  const close = () => setEditing(false);
  const saved = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  return html`
    <${PageHead} title=${name ?? t('payers.one')} back=${['/payers', t('nav.payers')]} note=${payer && state(payer)}>
      ${payer && rights.delete && payer.active && html`<button class="quiet danger" disabled=${deactivate.busy} onClick=${deactivate.run}>
        ${t('payers.deactivate')}
      </button>`}
      ${payer && rights.update && html`<button class="quiet" onClick=${() => setEditing(true)}>
        <${Icon} name="edit" size=${16} />${t('do.edit')}
      </button>`}
      <${WhoSees} type="payers" id=${id} />
    <//>
    <${Loaded} load=${load} lines=${6}>${() => html`<${Details} payer=${payer} />`}<//>
    ${editing && html`<${PayerDialog} payer=${payer} etag=${load.data.etag} close=${close} done=${saved} />`}`;
}

/** The list of payers, or one payer. */
export default ({ id }) => (id ? html`<${Payer} id=${id} />` : html`<${PayerList} />`);
