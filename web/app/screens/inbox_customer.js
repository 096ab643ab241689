import { html } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { fullName } from '../customers.js';
import { date, phone } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge, Facts } from '../ui/display.js';
import { Loaded } from '../ui/feedback.js';
import { Person } from '../ui/person.js';

const MOST = 3; // records of one user; nearly all have one
const OPEN_TASKS = 'pending,in_progress';

/** The records that the user has created, with their open tasks. */
async function loadRecords(userId) {
  const { data } = await api.get('/v1/customers', { 'search.created_by': userId, limit: MOST, sort: 'created_at' });
  return Promise.all(data.map(async (customer) => {
    const tasks = may('tasks', 'read_all')
      && await api.get(`/v1/customers/${customer.id}/tasks`, { limit: MOST, 'search.status': OPEN_TASKS });
    return { customer, tasks: tasks ? tasks.data : [] };
  }));
}

const Record = ({ customer, tasks }) => html`<section class="stack" aria-label=${fullName(customer)}>
  <h3><a href=${`/customers/${customer.id}`}><bdi>${fullName(customer)}</bdi></a></h3>
  <p class="row"><${Badge} group="kyc_status" value=${customer.kyc_status} />
    <span class="fine">${term('verification_level', customer.verification_level)}</span></p>
  <${Facts} list rows=${[
    [t('field.email'), customer.email],
    [t('field.phone'), customer.phone && phone(customer.phone)],
    [t('field.date_of_birth'), customer.date_of_birth && date(customer.date_of_birth)],
    [t('field.address'), [customer.address?.city, country(customer.address?.country)].filter(Boolean).join(', ')],
  ]} />
  ${tasks.length > 0 && html`<ul class="items">${tasks.map((task) => html`<li key=${task.id}>
    <a class="plain grow" href=${`/customers/${customer.id}/tasks/${task.id}`}>${task.title}</a>
    <${Badge} group="task_status" value=${task.status} />
  </li>`)}</ul>`}
</section>`;

/** The author of a thread: the user, and the customers whose records they have created. */
export function CustomerPanel({ userId }) {
  const load = useLoad(() => loadRecords(userId), [userId]);
  return html`<aside class="inbox-customer" aria-label=${t('inbox.customer')}>
    <h2><${Person} id=${userId} signIn /></h2>
    <${Loaded} load=${load} lines=${5}>${(records) => (records.length
      ? records.map((one) => html`<${Record} key=${one.customer.id} ...${one} />`)
      : html`<p class="fine">${t('inbox.no_customer')}</p>`)}<//>
  </aside>`;
}
