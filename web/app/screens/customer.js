import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { useRights } from '../access.js';
import { country } from '../countries.js';
import { fullName } from '../customers.js';
import { date, dateTime, phone } from '../format.js';
import { LANGUAGES, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live.js';
import { usePrefs } from '../prefs.js';
import { Avatar, Badge, Copy, Facts } from '../ui/data.js';
import { ErrorBox, Skeleton, toast } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead, Tabs } from '../ui/page.js';
import { CustomerDialog } from './customer_form.js';
import { CustomerNotifications, CustomerPayers, CustomerTasks } from './customer_related.js';
import { Kyc } from './kyc.js';
import { needed, Steps, WHEN } from './kyc_parts.js';

/** Where the verification stands and what comes next, with the way to it. */
function Verification({ customer }) {
  const load = useLoad(() => api.get(`/v1/customers/${customer.id}/kyc`), [customer.id, customer.kyc_status]);
  const due = WHEN.flatMap(([when, tone]) => (load.data?.requirements[when] ?? []).map((item) => ({ when, tone, item })));
  return html`<${Card} title=${t('customers.kyc')} aside=${html`<a class="more" href=${`/customers/${customer.id}/kyc`}>${t('customers.open_kyc')}<${Icon} name="right" size=${14} /></a>`}>
    <${Steps} status=${customer.kyc_status} down />
    ${due.length > 0 && html`<ul class="items tight">${due.slice(0, 3).map(({ when, tone, item }) => html`<li key=${when + item}><span class="grow">${needed(item)}</span><${Badge} value=${t(`kyc.${when}`)} tone=${tone} /></li>`)}</ul>`}
  <//>`;
}

function Details({ customer }) {
  usePrefs();
  const { address = {} } = customer;
  const place = [address?.postal_code, address?.city].filter(Boolean).join(' ');
  const business = customer.type === 'business';
  return html`<div class="grid-main">
    <div class="stack">
      <${Card} title=${t('customers.person')}><${Facts} rows=${[
        [t('field.first_name'), customer.first_name], [t('field.last_name'), customer.last_name],
        [t('field.date_of_birth'), date(customer.date_of_birth)], [t('field.nationality'), country(customer.nationality)],
        [t('customers.type'), term('customer_type', customer.type)], [t('customers.language'), LANGUAGES[customer.metadata?.language]],
      ].filter(([, value]) => value || !business)} /><//>
      <${Card} title=${t('customers.contact')}><${Facts} list rows=${[
        [t('field.email'), html`<a href=${`mailto:${customer.email}`}>${customer.email}</a>`],
        [t('field.phone'), customer.phone && html`<a class="num" href=${`tel:${customer.phone}`}>${phone(customer.phone)}</a>`],
        [t('field.address'), (address?.street || place) && html`${address.street && html`${address.street}<br />`}${place}${address.country && html`<br />${country(address.country)}`}`],
      ]} /><//>
      <${CustomerTasks} customer=${customer} brief />
    </div>
    <div class="stack">
      <${Verification} customer=${customer} />
      <${Card} title=${t('customers.record')}><${Facts} list rows=${[
        [t('field.created_at'), dateTime(customer.created_at)], [t('field.updated_at'), dateTime(customer.updated_at)],
        [t('field.id'), html`<span class="code">${customer.id}</span><${Copy} text=${customer.id} label=${t('copy.id')} />`],
      ]} /><//>
    </div>
  </div>`;
}

/** One customer: who he is, what is known about him, what is to be done for him. */
export default function Customer({ id, tab = '' }) {
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.tagged(`/v1/customers/${id}`), [id]);
  const rights = useRights('customers', id);
  useNotifications((item) => (!item || (item.rec_type === 'customers' && item.customer_id === id)) && load.reload());
  const customer = load.data?.record;
  const base = `/customers/${id}`;
  const current = tab ? `${base}/${tab}` : base;
  const tabs = [[base, t('customers.details')], [`${base}/kyc`, t('customers.kyc')], [`${base}/tasks`, t('nav.tasks')], [`${base}/payers`, t('nav.payers')], [`${base}/notifications`, t('nav.notifications')]];
  if (load.error && !customer) return html`<${PageHead} title=${t('customers.one')} back=${['/customers', t('nav.customers')]} /><${ErrorBox} error=${load.error} retry=${load.reload} />`;
  if (!customer) return html`<${PageHead} title=${t('customers.one')} back=${['/customers', t('nav.customers')]} /><${Skeleton} lines=${8} />`;
  const name = fullName(customer);
  const level = customer.verification_level !== 'none' && t('customers.level_is', { level: term('verification_level', customer.verification_level) });
  return html`
    <${PageHead} title=${name} back=${['/customers', t('nav.customers')]} picture=${html`<${Avatar} name=${name} size="xl" />`}
      note=${html`<span class="row"><${Badge} group="kyc_status" value=${customer.kyc_status} /><span>${[level, term('customer_type', customer.type), customer.address?.city].filter(Boolean).join(' · ')}</span></span>`}>
      ${rights.update && html`<button class="quiet" onClick=${() => setEditing(true)}><${Icon} name="edit" size=${16} />${t('do.edit')}</button>`}
    <//>
    <${Tabs} label=${t('customers.views')} tabs=${tabs} current=${current} />
    ${tab === '' && html`<${Details} customer=${customer} />`}
    ${tab === 'kyc' && html`<${Kyc} customer=${customer} rights=${rights} changed=${load.reload} />`}
    ${tab === 'tasks' && html`<${CustomerTasks} customer=${customer} />`}
    ${tab === 'payers' && html`<${CustomerPayers} customer=${customer} />`}
    ${tab === 'notifications' && html`<${CustomerNotifications} customer=${customer} />`}
    ${editing && html`<${CustomerDialog} customer=${customer} etag=${load.data.etag} close=${() => setEditing(false)} done=${() => { setEditing(false); load.reload(); toast(t('saved')); }} />`}`;
}
