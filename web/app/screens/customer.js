import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { CALL, may, mayCall, myId, useRights } from '../access.js';
import { fullName } from '../customers.js';
import { dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { usePreferences } from '../preferences.js';
import { useRecordChanges } from '../record_changes.js';
import { Avatar, Badge, Facts, RecordId } from '../ui/display.js';
import { ErrorBox, Skeleton, toast } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead, Tabs } from '../ui/page.js';
import { WhoSees } from '../ui/who_sees.js';
import { ContactFacts, PersonFacts } from './customer_facts.js';
import { CustomerDialog } from './customer_form.js';
import { CustomerPeople, ReachCustomer, useCustomerPeople } from './customer_people.js';
import { CustomerNotifications, CustomerPayers, CustomerTasks } from './customer_related.js';
import { Kyc } from './kyc.js';
import { CustomerPrivacy } from './privacy.js';
import { RequirementList, requirementsOf, Steps } from './kyc_steps.js';
import { RecordStream } from './record_stream.js';

const MAX_REQUIREMENTS = 3; // on the customer's first view

/** The state of the verification and the most urgent requirements, with a link to the details. */
function Verification({ customer }) {
  const load = useLoad(() => api.get(`/v1/customers/${customer.id}/kyc`), [customer.id, customer.kyc_status]);
  const due = load.data ? requirementsOf(load.data.requirements).slice(0, MAX_REQUIREMENTS) : [];
  const more = html`<a class="more" href=${`/customers/${customer.id}/kyc`}>
    ${t('customers.open_kyc')}<${Icon} name="right" size=${14} />
  </a>`;
  return html`<${Card} title=${t('customers.kyc')} aside=${more}>
    <${Steps} status=${customer.kyc_status} vertical />
    ${due.length > 0 && html`<${RequirementList} rows=${due} tight />`}
  <//>`;
}

function Details({ customer, people, save }) {
  usePreferences();
  const users = people.users.map(({ id }) => id).filter((id) => id !== myId());
  return html`<div class="grid-main">
    <div class="stack">
      <${PersonFacts} customer=${customer} save=${save} />
      <${ContactFacts} customer=${customer} save=${save} />
      ${mayCall(CALL.customerTasks) && html`<${CustomerTasks} customer=${customer} brief />`}
      <${RecordStream} customer=${customer} users=${users} />
    </div>
    <div class="stack">
      ${mayCall(CALL.kyc) && html`<${Verification} customer=${customer} />`}
      <${CustomerPeople} customer=${customer} people=${people} />
      <${Card} title=${t('customers.record')}><${Facts} list rows=${[
        [t('field.created_at'), dateTime(customer.created_at)],
        [t('field.updated_at'), dateTime(customer.updated_at)],
        [t('field.id'), html`<${RecordId} id=${customer.id} />`],
      ]} /><//>
    </div>
  </div>`;
}

function Summary({ customer }) {
  const level = customer.verification_level !== 'none'
    && t('customers.level_is', { level: term('verification_level', customer.verification_level) });
  const words = [level, term('customer_type', customer.type), customer.address?.city].filter(Boolean).join(' · ');
  return html`<span class="row"><${Badge} group="kyc_status" value=${customer.kyc_status} /><span>${words}</span></span>`;
}

// The views with their titles, and the endpoints that they begin with.
const VIEWS = [['', 'customers.details'], ['kyc', 'customers.kyc', CALL.kyc], ['tasks', 'nav.tasks', CALL.customerTasks],
  ['payers', 'nav.payers', 'GET /v1/payers'], ['notifications', 'nav.notifications'], ['privacy', 'privacy.title']];

/** One customer: identity, contact, verification, tasks and payers. */
export default function Customer({ id, tab = '' }) {
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.withETag(`/v1/customers/${id}`), [id]);
  const allowed = useRights('customers', id);
  useNotifications((item) => (!item || (item.rec_type === 'customers' && item.customer_id === id)) && load.reload());
  useRecordChanges('customers', id, load.reload);
  const customer = load.data?.record;
  const people = useCustomerPeople(customer);
  const rights = customer?.erased_at ? {} : allowed; // An erased customer cannot be changed.
  const back = ['/customers', t('nav.customers')];
  if (!customer) {
    return html`<${PageHead} title=${t('customers.one')} back=${back} />
      ${load.error ? html`<${ErrorBox} error=${load.error} retry=${load.reload} />` : html`<${Skeleton} lines=${8} />`}`;
  }
  const path = (view) => `/customers/${id}${view && `/${view}`}`;
  const shows = ([view, , call]) => (view === 'privacy' ? rights.update : !call || mayCall(call));
  const tabs = VIEWS.filter(shows).map(([view, key]) => [path(view), t(key)]);
  const name = fullName(customer);
  const isStaff = may('customers', 'read_all');
  const close = () => setEditing(false);
  /** Changes some members of a version, by default the one that is shown; the others stay as they are. Returns the ETag afterwards. */
  const save = async (changes, ifMatch = load.data.etag) => {
    const { etag } = await api.withETag(`/v1/customers/${id}`, 'PUT', { body: changes, ifMatch });
    load.reload();
    return etag;
  };
  const saved = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  return html`
    <${PageHead} title=${name} back=${back} picture=${html`<${Avatar} name=${name} size="xl" />`}
      note=${html`<${Summary} customer=${customer} />`}>
      ${!customer.erased_at && isStaff && html`<${ReachCustomer} customer=${customer} name=${name} users=${people.users} />`}
      ${rights.update && html`<button class="quiet" onClick=${() => setEditing(true)}>
        <${Icon} name="edit" size=${16} />${t('do.edit')}
      </button>`}
      <${WhoSees} type="customers" id=${id} />
    <//>
    <${Tabs} label=${t('customers.views')} tabs=${tabs} current=${path(tab)} />
    ${tab === '' && html`<${Details} customer=${customer} people=${people} save=${rights.update && save} />`}
    ${tab === 'kyc' && html`<${Kyc} customer=${customer} rights=${rights} changed=${load.reload} />`}
    ${tab === 'tasks' && html`<${CustomerTasks} customer=${customer} />`}
    ${tab === 'payers' && html`<${CustomerPayers} customer=${customer} />`}
    ${tab === 'notifications' && html`<${CustomerNotifications} customer=${customer} />`}
    ${tab === 'privacy' && html`<${CustomerPrivacy} customer=${customer} name=${name} rights=${rights} changed=${load.reload} />`}
    ${editing && html`<${CustomerDialog} customer=${customer} etag=${load.data.etag} close=${close} done=${saved} />`}`;
}
