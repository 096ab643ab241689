import { html } from '../lib.js';
import { may } from '../access.js';
import { fullName } from '../customers.js';
import { country } from '../countries.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { anywhere, useList } from '../list.js';
import { usePrefs } from '../prefs.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Pager, Table } from '../ui/data.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Filter, Filters, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { CustomerDialog } from './customer_form.js';

const FIELDS = ['last_name', 'first_name', 'email', 'phone'];
const options = (group, values) => values.map((value) => [value, term(group, value)]);

const columns = () => [
  { key: 'name', label: t('customers.name'), sort: 'last_name', cell: (row) => html`<span class="with-avatar"><${Avatar} name=${fullName(row)} size="s" /><span class="two-lines"><span>${fullName(row)}</span><span class="mail">${row.email}</span></span></span>` },
  { key: 'type', minor: true, label: t('customers.type'), cell: (row) => term('customer_type', row.type) },
  { key: 'place', minor: true, label: t('customers.place'), cell: (row) => [row.address?.city, row.address?.country !== 'CH' && country(row.address?.country)].filter(Boolean).join(', ') },
  { key: 'kyc', label: t('customers.kyc'), sort: 'kyc_status', cell: (row) => html`<${Badge} group="kyc_status" value=${row.kyc_status} />` },
  { key: 'level', minor: true, label: t('customers.level'), sort: 'verification_level', cell: (row) => (row.verification_level === 'none' ? html`<span class="none">–</span>` : term('verification_level', row.verification_level)) },
  { key: 'created', minor: true, label: t('customers.since'), sort: 'created_at', cell: (row) => day(row.created_at) },
];

/** All customers the caller may see: searched, filtered, sorted, by pages. */
export default function Customers() {
  usePrefs();
  const { query } = useStore(route);
  const list = useList('/v1/customers', {
    filters: ['kyc_status', 'verification_level', 'type'], sort: '-created_at',
    search: (text, field) => ({ [`search.${field || (text.includes('@') ? 'email' : /^\+?\d/.test(text) ? 'phone' : 'last_name')}`]: anywhere(text) }),
  });
  const mayCreate = may('customers', 'create');
  const create = mayCreate && html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('customers.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.customers')} note=${t('customers.note')}>${create}<//>
    <${Filters}>
      <${Search} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('list.in')} value=${list.state.in} all=${t('list.auto')} options=${FIELDS.map((name) => [name, t(`field.${name}`)])} onChange=${(value) => list.set({ in: value })} />
      <${Filter} label=${t('customers.kyc')} value=${list.state.kyc_status} options=${options('kyc_status', ['not_started', 'pending', 'in_review', 'action_required', 'verified', 'expired', 'rejected'])} onChange=${(value) => list.set({ kyc_status: value })} />
      <${Filter} label=${t('customers.level')} value=${list.state.verification_level} options=${options('verification_level', ['none', 'basic', 'standard', 'enhanced'])} onChange=${(value) => list.set({ verification_level: value })} />
      <${Filter} label=${t('customers.type')} value=${list.state.type} options=${options('customer_type', ['individual', 'business'])} onChange=${(value) => list.set({ type: value })} />
    <//>
    <section class="card flush" aria-label=${t('nav.customers')}>
      <${Loaded} load=${list} lines=${8}>${(page) => (page.data.length
        ? html`<${Table} caption=${t('nav.customers')} columns=${columns()} rows=${page.data} sort=${list.state.sort} onSort=${(sort) => list.set({ sort })} link=${(row) => `/customers/${row.id}`} />
            <${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
        : list.filtered
          ? html`<${Empty} icon="search" title=${t('list.no_match')} action=${html`<button class="quiet" onClick=${list.clear}>${t('list.clear')}</button>`}>${t('list.no_match_text')}<//>`
          : html`<${Empty} icon="customers" title=${t('customers.none')} action=${create}>${t('customers.none_text')}<//>`)}<//>
    </section>
    ${query.get('new') && mayCreate && html`<${CustomerDialog} close=${() => setQuery({ new: '' })} done=${(made) => go(`/customers/${made.id}`)} />`}`;
}
