import { html } from '../lib.js';
import { api } from '../api.js';
import { customersOf, fullName } from '../customers.js';
import { CALL, may, mayCall, useCaller } from '../access.js';
import { conversations } from '../conversations.js';
import { dayFromToday } from '../dates.js';
import { ago, locale, longDay, number } from '../format.js';
import { greeting } from '../greeting.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications, useUnread } from '../live_updates.js';
import { usePreferences } from '../preferences.js';
import { useStore } from '../store.js';
import { ColumnChart, ShareBar } from '../ui/chart.js';
import { Avatar, Badge, Progress } from '../ui/display.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Activity } from './activity.js';
import { DueOn, isOverdue, OPEN } from './task_due.js';

const KYC = ['verified', 'in_review', 'pending', 'action_required', 'not_started', 'expired', 'rejected'];
const MONTHS = 12;
const SHOWN = 7; // tasks, and notifications

// The endpoints of the parts that not every role has.
const [CUSTOMERS, TASKS, CHATS] = ['GET /v1/customers', 'GET /v1/tasks', 'GET /v1/chats'];

const More = ({ href, text }) => html`<a class="more" href=${href}>${text}<${Icon} name="right" size=${14} /></a>`;

function Figure({ href, icon, value, label, note }) {
  return html`<a class="figure" href=${href}>
    <span class="figure-label"><${Icon} name=${icon} size=${16} />${label}</span>
    <span class="figure-value num">${value ?? '–'}</span>
    <span class="figure-note">${note || '\u00a0'}</span>
  </a>`;
}

function lastMonths() {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, i) => {
    const at = new Date(Date.UTC(now.getFullYear(), now.getMonth() - MONTHS + 1 + i, 1));
    const name = at.toLocaleDateString(locale(), { month: 'short', timeZone: 'UTC' }).replace('.', '');
    return { key: at.toISOString().slice(0, 7), name };
  });
}

const NoCustomers = () => html`<${Empty} icon="customers" title=${t('customers.none')}
  action=${may('customers', 'create') && html`<a class="button" href="/customers?new=1">${t('customers.new')}</a>`}>
  ${t('customers.none_text')}<//>`;

/** All customers by the state of their verification. */
function Verification() {
  const load = useLoad(() => api.get('/v1/customers', { stack: 'kyc_status', limit: 1 }));
  const parts = (totals) => KYC.map((key) => ({
    key, text: term('kyc_status', key), n: totals?.[key] ?? 0, href: `/customers?kyc_status=${key}`,
  }));
  const more = html`<${More} href="/customers" text=${t('overview.all_customers')} />`;
  return html`<${Card} title=${t('overview.kyc')} aside=${more}>
    <${Loaded} load=${load} lines=${3}>${(data) => (data.total === 0
      ? html`<${NoCustomers} />`
      : html`<${ShareBar} label=${t('overview.kyc')} parts=${parts(data.metadata?.group_totals)} />`)}<//>
  <//>`;
}

/** The caller's own customers with their state, for callers who may not read all customers. */
function OwnCustomers() {
  const load = useLoad(() => api.get('/v1/customers', { limit: 5, sort: '-created_at' }));
  const more = html`<${More} href="/customers" text=${t('overview.all_customers')} />`;
  const row = (one) => html`<li key=${one.id}>
    <${Avatar} name=${fullName(one)} />
    <div class="grow two-lines"><a class="plain" href=${`/customers/${one.id}`}>${fullName(one)}</a><span>${one.email}</span></div>
    <${Badge} group="kyc_status" value=${one.kyc_status} />
  </li>`;
  return html`<${Card} title=${t('overview.own')} aside=${more}>
    <${Loaded} load=${load} lines=${2}>${({ data }) => (data.length
      ? html`<ul class="items">${data.map(row)}</ul>`
      : html`<${NoCustomers} />`)}<//>
  <//>`;
}

/** New customers by month. */
function Growth({ load, months }) {
  const points = (totals) => months.map(({ key, name }) => [name, totals?.[key] ?? 0]);
  return html`<${Card} title=${t('overview.growth')}>
    <${Loaded} load=${load} lines=${4}>${(data) => html`
      <${ColumnChart} label=${t('overview.growth')} height=${132} points=${points(data?.metadata?.group_totals)} />`}<//>
  <//>`;
}

function Task({ task, customer }) {
  return html`<li>
    <div class="grow two-lines">
      <a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a>
      <span>${[fullName(customer), term('task_category', task.category)].filter(Boolean).join(' · ')}</span>
    </div>
    <${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} />
    ${isOverdue(task) ? html`<${DueOn} task=${task} />` : task.is_urgent
      ? html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`
      : html`<${Badge} group="task_status" value=${task.status} />`}
  </li>`;
}

/** The first open tasks: urgent ones, then by their day. */
function Tasks({ load, customers }) {
  const more = html`<${More} href="/tasks" text=${t('overview.all_tasks')} />`;
  return html`<${Card} title=${t('overview.tasks')} aside=${more}>
    <${Loaded} load=${load}>${({ data }) => (data.length
      ? html`<ul class="items duties">
          ${data.map((task) => html`<${Task} key=${task.id} task=${task} customer=${customers[task.customer_id]} />`)}
        </ul>`
      : html`<${Empty} icon="tasks" title=${t('overview.no_tasks')}>${t('overview.no_tasks_text')}<//>`)}<//>
  <//>`;
}

function CustomerFigure({ growth, months }) {
  const n = growth.data?.metadata?.group_totals?.[months.at(-1).key] ?? 0;
  return html`<${Figure} href="/customers" icon="customers" label=${t('nav.customers')}
    value=${growth.data && number(growth.data.total_unfiltered)}
    note=${growth.data && may('customers', 'read_all') && t('overview.this_month', { n })} />`;
}

function TaskFigure({ tasks }) {
  const { total, urgent, overdue } = tasks.data ?? {};
  const note = () => {
    const parts = [overdue && t('overview.overdue', { n: overdue }), urgent && t('overview.urgent', { n: urgent })].filter(Boolean);
    return parts.join(' · ') || t('overview.none_urgent');
  };
  return html`<${Figure} href="/tasks" icon="tasks" label=${t('overview.open_tasks')}
    value=${tasks.data && number(total)} note=${tasks.data && note()} />`;
}

/** The four figures at the top. */
function Figures({ showsCustomers, growth, months, tasks, activity }) {
  const unread = useUnread();
  const loaded = useStore(conversations);
  const n = loaded?.chats.filter((chat) => chat.unreadCount > 0).length ?? 0;
  const latest = activity.data?.data[0];
  return html`<div class="figures">
    ${showsCustomers && html`<${CustomerFigure} growth=${growth} months=${months} />`}
    ${mayCall(TASKS) && html`<${TaskFigure} tasks=${tasks} />`}
    ${mayCall(CHATS) && html`<${Figure} href="/chats" icon="chats" label=${t('overview.unread_messages')}
      value=${unread.chats === null ? null : number(unread.chats)}
      note=${n ? t('overview.in_chats', { n }) : loaded && t('overview.all_read')} />`}
    ${mayCall(CALL.notifications) && html`<${Figure} href="/notifications" icon="bell" label=${t('overview.unread_notifications')}
      value=${unread.notifications === null ? null : number(unread.notifications)}
      note=${latest && t('overview.latest', { ago: ago(latest.created_at) })} />`}
  </div>`;
}

function RecentActivity({ load }) {
  const more = html`<${More} href="/notifications" text=${t('overview.all_notifications')} />`;
  return html`<${Card} title=${t('overview.activity')} aside=${more}>
    <${Loaded} load=${load} lines=${6}>${({ data }) => (data.length
      ? html`<${Activity} items=${data} most=${SHOWN} />`
      : html`<${Empty} icon="bell" title=${t('overview.quiet')}>${t('overview.quiet_text')}<//>`)}<//>
  <//>`;
}

const MAX_ACTIVITY = 25;

/** The first open tasks, and how many there are, urgent and overdue ones among them. */
async function loadTasks() {
  const open = { 'search.status': OPEN.join(',') };
  const count = async (search) => (await api.get('/v1/tasks', { limit: -1, ...open, ...search })).total;
  const [page, urgent, overdue] = await Promise.all([
    api.get('/v1/tasks', { limit: SHOWN, sort: '-is_urgent,due,-created_at', ...open }),
    count({ 'search.is_urgent': true }), count({ 'search.due_on': `..${dayFromToday(-1)}` }),
  ]);
  return { ...page, urgent, overdue, customers: await customersOf(page.data) };
}

/** The first screen: key figures, open tasks and recent activity. */
export default function Overview() {
  usePreferences();
  const { me } = useCaller();
  const showsCustomers = mayCall(CUSTOMERS);
  const showsAll = showsCustomers && may('customers', 'read_all');
  const months = lastMonths();
  const tasks = useLoad(() => (mayCall(TASKS) ? loadTasks() : null));
  const activity = useLoad(() => (mayCall(CALL.notifications) ? api.get('/v1/notifications', {
    limit: MAX_ACTIVITY, 'search.user_id': me.id, sort: '-created_at',
  }) : null));
  const growth = useLoad(() => (showsCustomers ? api.get('/v1/customers', {
    stack: 'created_at[YYYY-MM]', limit: 1, 'search.created_at': `${months[0].key}-01T00:00:00.000Z..`,
  }) : null));
  useNotifications((item) => {
    if (!item) return activity.reload();
    const add = (data) => [item, ...data.filter((one) => one.id !== item.id)].slice(0, MAX_ACTIVITY);
    activity.setData((was) => was && { ...was, data: add(was.data) });
    if (item.rec_type === 'tasks') tasks.reload();
    return undefined;
  });
  return html`
    <${PageHead} title=${greeting(me.display_name)} note=${longDay(new Date())} />
    <${Figures} showsCustomers=${showsCustomers} growth=${growth} months=${months} tasks=${tasks} activity=${activity} />
    <div class="grid-main">
      <div class="stack">
        ${showsCustomers && (showsAll ? html`<${Verification} />` : html`<${OwnCustomers} />`)}
        ${mayCall(TASKS) && html`<${Tasks} load=${tasks} customers=${tasks.data?.customers ?? {}} />`}
      </div>
      <div class="stack">
        ${showsAll && html`<${Growth} load=${growth} months=${months} />`}
        ${mayCall(CALL.notifications) && html`<${RecentActivity} load=${activity} />`}
      </div>
    </div>`;
}
