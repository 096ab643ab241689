import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { myId } from '../people.js';
import { Badge, Progress } from '../ui/display.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Table } from '../ui/table.js';
import { Activity } from './activity.js';
import { PayerDialog } from './payer_form.js';
import { TaskDialog } from './task_form.js';

/**
 * A card with the records of a customer, and the dialog that adds one.
 * @param {{title: string, icon: string, none: string, columns: any[], link: (row: any) => string, add?: string, dialog: any}} props
 *   none: the text without records; add: the label of the button, absent without the permission; dialog: the component
 */
function Related({ customer, load, rows, title, icon, none, columns, link, add, dialog: AddDialog }) {
  const [adding, setAdding] = useState(false);
  const close = () => setAdding(false);
  const done = () => {
    close();
    load.reload();
  };
  const button = add && html`<button class="quiet small" onClick=${() => setAdding(true)}>
    <${Icon} name="plus" size=${14} />${add}
  </button>`;
  return html`<${Card} title=${title} aside=${button}>
    <${Loaded} load=${load}>${() => (rows.length
      ? html`<${Table} caption=${title} columns=${columns} rows=${rows} link=${link} />`
      : html`<${Empty} icon=${icon} title=${none} />`)}<//>
    ${adding && html`<${AddDialog} customer=${customer} close=${close} done=${done} />`}
  <//>`;
}

function TaskState({ task }) {
  return html`<span class="row">
    <${Badge} group="task_status" value=${task.status} />
    ${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}
  </span>`;
}

const TaskProgress = ({ task }) => html`<${Progress} part=${task.performed_weight} whole=${task.weight}
  label=${t('tasks.progress_of', { title: task.title })} />`;

/** A customer's tasks; brief shows them only when there are some, without a button to add one. */
export function CustomerTasks({ customer, brief }) {
  const load = useLoad(() => api.get(`/v1/customers/${customer.id}/tasks`, { limit: 100 }), [customer.id]);
  const rows = load.data?.data ?? [];
  const columns = [
    { key: 'title', label: t('tasks.title'), cell: (row) => row.title },
    { key: 'status', label: t('tasks.status'), cell: (row) => html`<${TaskState} task=${row} />` },
    { key: 'category', minor: true, label: t('tasks.category'), cell: (row) => term('task_category', row.category) },
    { key: 'progress', label: t('tasks.progress'), cell: (row) => html`<${TaskProgress} task=${row} />` },
    { key: 'created', minor: true, num: true, label: t('field.created_at'), cell: (row) => day(row.created_at) },
  ];
  if (brief && !rows.length) return null;
  return html`<${Related} customer=${customer} load=${load} rows=${rows} title=${t('nav.tasks')} icon="tasks" none=${t('tasks.none')}
    columns=${columns} link=${(row) => `/customers/${customer.id}/tasks/${row.id}`}
    add=${may('tasks', 'create') && !brief && t('tasks.new')} dialog=${TaskDialog} />`;
}

const PAGE = 100; // The list of payers has no filter by customer, so its pages are filtered here.
const MAX_PAGES = 20;

async function payersOf(customerId) {
  const found = [];
  for (let offset = 0, more = true; more && offset < MAX_PAGES * PAGE; offset += PAGE) {
    const page = await api.get('/v1/payers', { limit: PAGE, offset });
    found.push(...page.payers.filter((payer) => payer.customer_id === customerId));
    more = page.has_more;
  }
  return found;
}

/** The payers of a customer. */
export function CustomerPayers({ customer }) {
  const load = useLoad(() => payersOf(customer.id), [customer.id]);
  const state = (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />`;
  const columns = [
    { key: 'name', label: t('field.name'), cell: (row) => row.name || row.company },
    { key: 'company', label: t('field.company'), cell: (row) => row.name && row.company },
    { key: 'country', label: t('field.country'), cell: (row) => country(row.country) },
    { key: 'active', label: t('field.state'), cell: state },
  ];
  return html`<${Related} customer=${customer} load=${load} rows=${load.data ?? []} title=${t('nav.payers')} icon="payers"
    none=${t('payers.none')} columns=${columns} link=${(row) => `/payers/${row.id}`}
    add=${may('payers', 'create') && t('payers.new')} dialog=${PayerDialog} />`;
}

/** The caller's notifications about a customer. */
export function CustomerNotifications({ customer }) {
  const load = useLoad(() => api.get('/v1/notifications', {
    limit: 50, 'search.user_id': myId(), 'search.customer_id': customer.id, sort: '-created_at',
  }), [customer.id]);
  return html`<${Card} title=${t('nav.notifications')}>
    <${Loaded} load=${load}>${({ data }) => (data.length
      ? html`<${Activity} items=${data} />`
      : html`<${Empty} icon="bell" title=${t('notifications.none')} />`)}<//>
  <//>`;
}
