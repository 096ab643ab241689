import { html } from '../lib.js';
import { api } from '../api.js';
import { may, mayAny, useCaller } from '../access.js';
import { ago, number, percent } from '../format.js';
import { language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications, useUnread } from '../live.js';
import { usePrefs } from '../prefs.js';
import { ownPath } from '../router.js';
import { Series, ShareBar } from '../ui/chart.js';
import { Badge, Progress } from '../ui/data.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';

const KYC = ['verified', 'in_review', 'pending', 'action_required', 'not_started', 'expired', 'rejected'];
const MONTHS = 12;

function Figure({ href, icon, value, label }) {
  return html`<a class="figure" href=${href}><${Icon} name=${icon} /><span class="figure-value num">${value ?? '–'}</span><span class="figure-label">${label}</span></a>`;
}

function lastMonths() {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, i) => {
    const at = new Date(Date.UTC(now.getFullYear(), now.getMonth() - MONTHS + 1 + i, 1));
    return { key: at.toISOString().slice(0, 7), name: at.toLocaleDateString(language.get(), { month: 'short', timeZone: 'UTC' }).replace('.', '') };
  });
}

function Customers() {
  const states = useLoad(() => api.get('/v1/customers', { stack: 'kyc_status', limit: 1 }));
  const months = lastMonths();
  const growth = useLoad(() => api.get('/v1/customers', { stack: 'created_at[YYYY-MM]', limit: 1, 'search.created_at': `${months[0].key}-01T00:00:00.000Z..` }));
  return html`
    <${Card} title=${t('overview.kyc')} aside=${html`<a class="fine" href="/customers">${t('overview.all_customers')}</a>`}>
      <${Loaded} load=${states} lines=${3}>${(data) => (data.total === 0
        ? html`<${Empty} icon="customers" title=${t('customers.none')} action=${may('customers', 'create') && html`<a class="button" href="/customers?new=1">${t('customers.new')}</a>`} />`
        : html`<${ShareBar} label=${t('overview.kyc')} parts=${KYC.map((key) => ({ key, text: term('kyc_status', key), n: data.metadata?.group_totals?.[key] ?? 0, href: `/customers?kyc_status=${key}` }))} />`)}<//>
    <//>
    <${Card} title=${t('overview.growth')}>
      <${Loaded} load=${growth} lines=${4}>${(data) => html`<${Series} label=${t('overview.growth')} points=${months.map(({ key, name }) => [name, data.metadata?.group_totals?.[key] ?? 0])} />`}<//>
    <//>`;
}

function Tasks({ load }) {
  const open = (data) => data.filter((task) => task.status === 'pending' || task.status === 'in_progress').sort((a, b) => b.is_urgent - a.is_urgent);
  return html`<${Card} title=${t('overview.tasks')} aside=${html`<a class="fine" href="/tasks">${t('overview.all_tasks')}</a>`}>
    <${Loaded} load=${load}>${({ data }) => {
      const mine = open(data);
      if (!mine.length) return html`<${Empty} icon="tasks" title=${t('overview.no_tasks')}>${t('overview.no_tasks_text')}<//>`;
      return html`<ul class="items">${mine.slice(0, 6).map((task) => html`<li key=${task.id}>
        <div class="grow"><a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a>
          <${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} /></div>
        ${task.is_urgent ? html`<${Badge} value=${t('tasks.urgent')} tone="warn" />` : html`<${Badge} group="task_status" value=${task.status} />`}
      </li>`)}</ul>`;
    }}<//>
  <//>`;
}

/** One line of what happened, linked to where it happened. */
export function ActivityLine({ item }) {
  const path = ownPath(item.link_url);
  return html`<li class=${item.read ? '' : 'unread'}>
    <div class="grow">${path ? html`<a class="plain" href=${path}>${item.title || term('event', item.event)}</a>` : html`<span>${item.title || term('event', item.event)}</span>`}
      ${item.content && html`<p class="fine">${item.content}</p>`}</div>
    <time class="fine" dateTime=${item.created_at}>${ago(item.created_at)}</time>
  </li>`;
}

/** The first screen: what there is to do and what is going on. */
export default function Overview() {
  usePrefs();
  const { me } = useCaller();
  const unread = useUnread();
  const showsCustomers = mayAny('customers');
  const tasks = useLoad(() => api.get('/v1/tasks', { limit: 100 }));
  const activity = useLoad(() => api.get('/v1/notifications', { limit: 8, 'search.user_id': me.id, sort: '-created_at' }));
  const totals = useLoad(() => (showsCustomers ? api.get('/v1/customers', { limit: -1 }) : null));
  useNotifications((item) => {
    if (!item) return activity.reload();
    activity.setData((was) => was && { ...was, data: [item, ...was.data.filter((one) => one.id !== item.id)].slice(0, 8) });
    if (item.rec_type === 'tasks') tasks.reload();
    return undefined;
  });
  const all = tasks.data?.data ?? [];
  const done = all.reduce((sum, task) => sum + task.performed_weight, 0);
  const whole = all.reduce((sum, task) => sum + task.weight, 0);
  const hour = new Date().getHours();
  return html`
    <${PageHead} title=${t(hour < 11 ? 'overview.morning' : hour < 18 ? 'overview.day' : 'overview.evening')} note=${t('overview.note')} />
    <div class="figures">
      ${showsCustomers && html`<${Figure} href="/customers" icon="customers" value=${totals.data && number(totals.data.total)} label=${t('nav.customers')} />`}
      <${Figure} href="/tasks" icon="tasks" value=${tasks.data && number(all.filter((task) => ['pending', 'in_progress'].includes(task.status)).length)} label=${t('overview.open_tasks')} />
      ${!showsCustomers && html`<${Figure} href="/tasks" icon="check" value=${tasks.data && `${percent(done, whole)} %`} label=${t('overview.progress')} />`}
      <${Figure} href="/chats" icon="chats" value=${unread.chats === null ? null : number(unread.chats)} label=${t('overview.unread_messages')} />
      <${Figure} href="/notifications" icon="bell" value=${unread.notifications === null ? null : number(unread.notifications)} label=${t('overview.unread_notifications')} />
    </div>
    <div class="grid-main">
      <div class="stack">${showsCustomers && html`<${Customers} />`}<${Tasks} load=${tasks} /></div>
      <${Card} title=${t('overview.activity')} aside=${html`<a class="fine" href="/notifications">${t('overview.all_notifications')}</a>`}>
        <${Loaded} load=${activity} lines=${6}>${({ data }) => (data.length
          ? html`<ul class="items activity" aria-live="polite">${data.map((item) => html`<${ActivityLine} key=${item.id} item=${item} />`)}</ul>`
          : html`<${Empty} icon="bell" title=${t('overview.quiet')}>${t('overview.quiet_text')}<//>`)}<//>
      <//>
    </div>`;
}
