import { html } from '../lib.js';
import { may } from '../access.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { fullName } from '../customers.js';
import { country } from '../countries.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { byWords, useList } from '../list.js';
import { usePreferences } from '../preferences.js';
import { go } from '../router.js';
import { Avatar, Badge, Dash } from '../ui/display.js';
import { Empty } from '../ui/feedback.js';
import { Filter, Filters, optionsOf, Search } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { RecordList } from '../ui/record_list.js';
import { CustomerDialog } from './customer_form.js';

const SEARCH_FIELDS = ['last_name', 'first_name', 'email', 'phone'];
const STATUSES = ['not_started', 'pending', 'in_review', 'action_required', 'verified', 'expired', 'rejected'];
const REVIEWABLE = ['pending', 'in_review'];
const LEVELS = ['none', 'basic', 'standard', 'enhanced'];

const Name = ({ customer }) => html`<span class="with-avatar">
  <${Avatar} name=${fullName(customer)} size="s" />
  <span class="two-lines"><span>${fullName(customer)}</span><span class="mail">${customer.email}</span></span>
</span>`;

function place({ address }) {
  const abroad = address?.country !== 'CH' && country(address?.country);
  return [address?.city, abroad].filter(Boolean).join(', ');
}

const level = ({ verification_level: value }) => (value === 'none' ? html`<${Dash} />` : term('verification_level', value));

const columns = () => [
  { key: 'name', label: t('customers.name'), sort: 'last_name', cell: (row) => html`<${Name} customer=${row} />` },
  { key: 'type', minor: true, wide: true, label: t('customers.type'), cell: (row) => term('customer_type', row.type) },
  { key: 'place', minor: true, label: t('customers.place'), cell: place },
  {
    key: 'kyc', beside: true, label: t('customers.kyc'), sort: 'kyc_status',
    cell: (row) => html`<${Badge} group="kyc_status" value=${row.kyc_status} />`,
  },
  { key: 'level', minor: true, label: t('customers.level'), sort: 'verification_level', cell: level },
  { key: 'created', minor: true, label: t('customers.since'), sort: 'created_at', cell: (row) => day(row.created_at) },
];

function CustomerFilters({ list }) {
  const { state } = list;
  const filter = (name, label, group, values) => html`<${Filter} label=${label} value=${state[name]}
    options=${optionsOf(values, (value) => term(group, value))} onChange=${(value) => list.set({ [name]: value })} />`;
  return html`<${Filters}>
    <${Search} value=${state.q} onSearch=${(q) => list.set({ q })} />
    <${Filter} label=${t('list.in')} value=${state.in} all=${t('list.auto')}
      options=${optionsOf(SEARCH_FIELDS, (name) => t(`field.${name}`))} onChange=${(value) => list.set({ in: value })} />
    ${filter('kyc_status', t('customers.kyc'), 'kyc_status', STATUSES)}
    ${filter('verification_level', t('customers.level'), 'verification_level', LEVELS)}
    ${filter('type', t('customers.type'), 'customer_type', ['individual', 'business'])}
  <//>`;
}

/** The actions of reviewers for selected customers. */
const bulkActions = () => (may('customers', 'read_all') && may('customers', 'update') ? [{
  key: 'take', label: t('customers.take'), icon: 'roles', fits: (row) => REVIEWABLE.includes(row.kyc_status),
  async run(rows) {
    const { cases } = await api.post('/v1/kyc/cases/take', { customer_ids: rows.map((row) => row.id) });
    const left = cases.filter(({ outcome }) => outcome !== 'taken');
    return left.map(() => Object.assign(new Error(t('customers.not_taken')), { hint: '' }));
  },
}] : []);

/** The customers that the caller may see: searched, filtered, sorted, by pages. */
export default function Customers() {
  usePreferences();
  const { query, set } = useAddress();
  const list = useList('/v1/customers', {
    filters: ['kyc_status', 'verification_level', 'type'], sort: '-created_at',
    search: byWords,
  });
  const mayCreate = may('customers', 'create');
  const create = mayCreate && html`<button onClick=${() => set({ new: 1 })}>
    <${Icon} name="plus" size=${16} />${t('customers.new')}
  </button>`;
  const empty = html`<${Empty} icon="customers" title=${t('customers.none')} action=${create}>${t('customers.none_text')}<//>`;
  const close = () => set({ new: '' });
  return html`
    <${PageHead} title=${t('nav.customers')} note=${t('customers.note')}>
      ${mayCreate && html`<button class="quiet" onClick=${() => go('/imports')}>
        <${Icon} name="upload" size=${16} />${t('customers.import')}
      </button>`}
      ${create}
    <//>
    <${CustomerFilters} list=${list} />
    <${RecordList} list=${list} title=${t('nav.customers')} columns=${columns()} empty=${empty} link=${(row) => `/customers/${row.id}`}
      bulk=${bulkActions()} nameOf=${fullName} live="customers.created" />
    ${query.get('new') && mayCreate && html`<${CustomerDialog} compare close=${close}
      done=${(made) => go(`/customers/${made.id}`)} />`}`;
}
