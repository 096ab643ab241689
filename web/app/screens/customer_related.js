import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may, myId } from '../access.js';
import { country } from '../countries.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge, Progress, Table } from '../ui/data.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Activity } from './activity.js';
import { PayerDialog } from './payer_form.js';
import { TaskDialog } from './task_form.js';

const addButton = (shown, text, add) => shown && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${text}</button>`;

/** What is to be done for a customer; briefly, only what there is. */
export function CustomerTasks({ customer, brief }) {
  const [adding, setAdding] = useState(false);
  const load = useLoad(() => api.get(`/v1/customers/${customer.id}/tasks`, { limit: 100 }), [customer.id]);
  const columns = [
    { key: 'title', label: t('tasks.title'), cell: (row) => row.title },
    { key: 'status', label: t('tasks.status'), cell: (row) => html`<span class="row"><${Badge} group="task_status" value=${row.status} />${row.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}</span>` },
    { key: 'category', minor: true, label: t('tasks.category'), cell: (row) => term('task_category', row.category) },
    { key: 'progress', label: t('tasks.progress'), cell: (row) => html`<${Progress} part=${row.performed_weight} whole=${row.weight} label=${t('tasks.progress_of', { title: row.title })} />` },
    { key: 'created', minor: true, num: true, label: t('field.created_at'), cell: (row) => day(row.created_at) },
  ];
  const add = () => setAdding(true);
  if (brief && !load.data?.data.length) return null;
  return html`<${Card} title=${t('nav.tasks')} aside=${addButton(may('tasks', 'create') && !brief, t('tasks.new'), add)}>
    <${Loaded} load=${load}>${({ data }) => (data.length ? html`<${Table} caption=${t('nav.tasks')} columns=${columns} rows=${data} link=${(row) => `/customers/${customer.id}/tasks/${row.id}`} />` : html`<${Empty} icon="tasks" title=${t('tasks.none')} />`)}<//>
    ${adding && html`<${TaskDialog} customer=${customer} close=${() => setAdding(false)} done=${() => { setAdding(false); load.reload(); }} />`}
  <//>`;
}

const PAGE = 100; // The payers' list has no filter by customer, so the customer's own are picked out of its pages.

async function payersOf(customerId) {
  const mine = [];
  for (let offset = 0, more = true; more && offset < 20 * PAGE; offset += PAGE) {
    const page = await api.get('/v1/payers', { limit: PAGE, offset });
    mine.push(...page.payers.filter((payer) => payer.customer_id === customerId));
    more = page.has_more;
  }
  return mine;
}

/** Who pays for a customer. */
export function CustomerPayers({ customer }) {
  const [adding, setAdding] = useState(false);
  const load = useLoad(() => payersOf(customer.id), [customer.id]);
  const columns = [
    { key: 'name', label: t('field.name'), cell: (row) => row.name || row.company },
    { key: 'company', label: t('field.company'), cell: (row) => row.name && row.company },
    { key: 'country', label: t('field.country'), cell: (row) => country(row.country) },
    { key: 'active', label: t('field.state'), cell: (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />` },
  ];
  return html`<${Card} title=${t('nav.payers')} aside=${addButton(may('payers', 'create'), t('payers.new'), () => setAdding(true))}>
    <${Loaded} load=${load}>${(rows) => (rows.length ? html`<${Table} caption=${t('nav.payers')} columns=${columns} rows=${rows} link=${(row) => `/payers/${row.id}`} />` : html`<${Empty} icon="payers" title=${t('payers.none')} />`)}<//>
    ${adding && html`<${PayerDialog} customer=${customer} close=${() => setAdding(false)} done=${() => { setAdding(false); load.reload(); }} />`}
  <//>`;
}

/** What the caller was told about a customer. */
export function CustomerNotifications({ customer }) {
  const load = useLoad(() => api.get('/v1/notifications', { limit: 50, 'search.user_id': myId(), 'search.customer_id': customer.id, sort: '-created_at' }), [customer.id]);
  return html`<${Card} title=${t('nav.notifications')}>
    <${Loaded} load=${load}>${({ data }) => (data.length ? html`<${Activity} items=${data} />` : html`<${Empty} icon="bell" title=${t('notifications.none')} />`)}<//>
  <//>`;
}
