import { html, useState } from '../lib.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { myId } from '../people.js';
import { Badge, Progress } from '../ui/display.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Pager, Table } from '../ui/table.js';
import { Activity } from './activity.js';
import { PayerDialog } from './payer_form.js';
import { DueOn, OPEN } from './task_due.js';
import { TaskDialog } from './task_form.js';

/**
 * A card with the records of a customer, and the dialog that adds one.
 * @param {{list: ReturnType<import('../list.js').useList>, rowsOf?: (page: any) => any[], title: string, icon: string, none: string,
 *   columns: any[], link: (row: any) => string, add?: string, dialog: any}} props
 *   none: the text without records; add: the label of the button, absent without the permission; dialog: the component
 */
function Related({ customer, list, rowsOf = (page) => page.data, title, icon, none, columns, link, add, dialog: AddDialog }) {
  const [adding, setAdding] = useState(false);
  const close = () => setAdding(false);
  const done = () => {
    close();
    list.reload();
  };
  const button = add && html`<button class="quiet small" onClick=${() => setAdding(true)}>
    <${Icon} name="plus" size=${14} />${add}
  </button>`;
  return html`<${Card} title=${title} aside=${button}>
    <${Loaded} load=${list}>${(page) => (page.total
      ? html`<${Table} caption=${title} columns=${columns} rows=${rowsOf(page)} link=${link} />
          ${page.total > list.limit && html`
            <${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`}`
      : html`<${Empty} icon=${icon} title=${t(none)}>${t(`${none}_text`)}<//>`)}<//>
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

const BRIEF = 5; // tasks on the customer's first view

/** A customer's tasks; brief shows the first ones, and nothing without any, without a button to add one. */
export function CustomerTasks({ customer, brief }) {
  const list = useList(`/v1/customers/${customer.id}/tasks`, brief
    ? { sort: '-is_urgent,due', limit: BRIEF, fixed: { 'search.status': OPEN.join(',') } }
    : { sort: '-created_at' });
  const columns = [
    { key: 'title', label: t('tasks.title'), cell: (row) => row.title },
    { key: 'status', label: t('tasks.status'), cell: (row) => html`<${TaskState} task=${row} />` },
    { key: 'due', minor: true, label: t('tasks.due'), cell: (row) => html`<${DueOn} task=${row} />` },
    { key: 'category', minor: true, wide: true, label: t('tasks.category'), cell: (row) => term('task_category', row.category) },
    { key: 'progress', label: t('tasks.progress'), cell: (row) => html`<${TaskProgress} task=${row} />` },
  ];
  if (brief && !list.data?.total) return null;
  return html`<${Related} customer=${customer} list=${list} title=${t('nav.tasks')} icon="tasks" none="tasks.none"
    columns=${columns} link=${(row) => `/customers/${customer.id}/tasks/${row.id}`}
    add=${may('tasks', 'create') && !brief && t('tasks.new')} dialog=${TaskDialog} />`;
}

/** The payers of a customer. */
export function CustomerPayers({ customer }) {
  const list = useList('/v1/payers', { fixed: { customer_id: customer.id } });
  const state = (row) => html`<${Badge} group="active" value=${row.active ? 'active' : 'inactive'} />`;
  const columns = [
    { key: 'name', label: t('field.name'), cell: (row) => row.name || row.company },
    { key: 'company', label: t('field.company'), cell: (row) => row.name && row.company },
    { key: 'country', label: t('field.country'), cell: (row) => country(row.country) },
    { key: 'active', label: t('field.state'), cell: state },
  ];
  return html`<${Related} customer=${customer} list=${list} rowsOf=${(page) => page.payers} title=${t('nav.payers')} icon="payers"
    none="payers.none" columns=${columns} link=${(row) => `/payers/${row.id}`}
    add=${may('payers', 'create') && t('payers.new')} dialog=${PayerDialog} />`;
}

/** The caller's notifications about a customer. */
export function CustomerNotifications({ customer }) {
  const list = useList('/v1/notifications', {
    limit: 50, sort: '-created_at', fixed: { 'search.user_id': myId(), 'search.customer_id': customer.id },
  });
  return html`<${Card} title=${t('nav.notifications')}>
    <${Loaded} load=${list}>${({ data, total }) => (total
      ? html`<${Activity} items=${data} />
          ${total > list.limit && html`<${Pager} offset=${list.state.offset} limit=${list.limit} total=${total} onMove=${list.move} />`}`
      : html`<${Empty} icon="bell" title=${t('notifications.none')}>${t('notifications.none_text')}<//>`)}<//>
  <//>`;
}
