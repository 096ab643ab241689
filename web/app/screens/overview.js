import { html } from '../lib.js';
import { api } from '../api.js';
import { customersOf, fullName } from '../customers.js';
import { may, mayAny, useCaller } from '../access.js';
import { ago, longDay, number, percent } from '../format.js';
import { language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { conversations, useNotifications, useUnread } from '../live.js';
import { usePrefs } from '../prefs.js';
import { useStore } from '../store.js';
import { Series, ShareBar } from '../ui/chart.js';
import { Badge, Progress } from '../ui/data.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Activity } from './activity.js';

const KYC = ['verified', 'in_review', 'pending', 'action_required', 'not_started', 'expired', 'rejected'];
const MONTHS = 12;
const SHOWN = 7;

const isOpen = (task) => task.status === 'pending' || task.status === 'in_progress';

function Figure({ href, icon, value, label, note }) {
  return html`<a class="figure" href=${href}><span class="figure-label"><${Icon} name=${icon} size=${16} />${label}</span><span class="figure-value num">${value ?? '–'}</span><span class="figure-note">${note || '\u00a0'}</span></a>`;
}

function lastMonths() {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, i) => {
    const at = new Date(Date.UTC(now.getFullYear(), now.getMonth() - MONTHS + 1 + i, 1));
    return { key: at.toISOString().slice(0, 7), name: at.toLocaleDateString(language.get(), { month: 'short', timeZone: 'UTC' }).replace('.', '') };
  });
}

const allCustomers = (text) => html`<a class="more" href="/customers">${text}<${Icon} name="right" size=${14} /></a>`;

function Verification() {
  const states = useLoad(() => api.get('/v1/customers', { stack: 'kyc_status', limit: 1 }));
  return html`<${Card} title=${t('overview.kyc')} aside=${allCustomers(t('overview.all_customers'))}>
    <${Loaded} load=${states} lines=${3}>${(data) => (data.total === 0
      ? html`<${Empty} icon="customers" title=${t('customers.none')} action=${may('customers', 'create') && html`<a class="button" href="/customers?new=1">${t('customers.new')}</a>`} />`
      : html`<${ShareBar} label=${t('overview.kyc')} parts=${KYC.map((key) => ({ key, text: term('kyc_status', key), n: data.metadata?.group_totals?.[key] ?? 0, href: `/customers?kyc_status=${key}` }))} />`)}<//>
  <//>`;
}

function Growth({ load, months }) {
  return html`<${Card} title=${t('overview.growth')}>
    <${Loaded} load=${load} lines=${4}>${(data) => html`<${Series} label=${t('overview.growth')} height=${132} points=${months.map(({ key, name }) => [name, data?.metadata?.group_totals?.[key] ?? 0])} />`}<//>
  <//>`;
}

function Tasks({ load, names }) {
  return html`<${Card} title=${t('overview.tasks')} aside=${html`<a class="more" href="/tasks">${t('overview.all_tasks')}<${Icon} name="right" size=${14} /></a>`}>
    <${Loaded} load=${load}>${({ data }) => {
      const mine = data.filter(isOpen).sort((a, b) => b.is_urgent - a.is_urgent);
      if (!mine.length) return html`<${Empty} icon="tasks" title=${t('overview.no_tasks')}>${t('overview.no_tasks_text')}<//>`;
      return html`<ul class="items duties">${mine.slice(0, SHOWN).map((task) => html`<li key=${task.id}>
        <div class="grow two-lines"><a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a><span>${[fullName(names[task.customer_id]), term('task_category', task.category)].filter(Boolean).join(' · ')}</span></div>
        <${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} />
        ${task.is_urgent ? html`<${Badge} value=${t('tasks.urgent')} tone="warn" />` : html`<${Badge} group="task_status" value=${task.status} />`}
      </li>`)}</ul>`;
    }}<//>
  <//>`;
}

/** The four numbers on top, each with what stands behind it. */
function Figures({ shows, growth, months, tasks, activity }) {
  const unread = useUnread();
  const chats = useStore(conversations);
  const all = tasks.data?.data ?? [];
  const open = all.filter(isOpen);
  const urgent = open.filter((task) => task.is_urgent).length;
  const waiting = chats?.filter((chat) => chat.unreadCount > 0).length ?? 0;
  const latest = activity.data?.data[0];
  const done = percent(all.reduce((sum, task) => sum + task.performed_weight, 0), all.reduce((sum, task) => sum + task.weight, 0));
  const thisMonth = growth.data?.metadata?.group_totals?.[months.at(-1).key] ?? 0;
  return html`<div class="figures">
    ${shows && html`<${Figure} href="/customers" icon="customers" value=${growth.data && number(growth.data.total_unfiltered)} label=${t('nav.customers')} note=${growth.data && t('overview.this_month', { n: thisMonth })} />`}
    <${Figure} href="/tasks" icon="tasks" value=${tasks.data && number(open.length)} label=${t('overview.open_tasks')} note=${tasks.data && (urgent ? t('overview.urgent', { n: urgent }) : shows ? t('overview.none_urgent') : t('overview.done_share', { share: done }))} />
    <${Figure} href="/chats" icon="chats" value=${unread.chats === null ? null : number(unread.chats)} label=${t('overview.unread_messages')} note=${waiting ? t('overview.in_chats', { n: waiting }) : chats && t('overview.all_read')} />
    <${Figure} href="/notifications" icon="bell" value=${unread.notifications === null ? null : number(unread.notifications)} label=${t('overview.unread_notifications')} note=${latest && t('overview.latest', { ago: ago(latest.created_at) })} />
  </div>`;
}

/** The first screen: what there is to do and what is going on. */
export default function Overview() {
  usePrefs();
  const { me } = useCaller();
  const shows = mayAny('customers');
  const months = lastMonths();
  const tasks = useLoad(async () => {
    const page = await api.get('/v1/tasks', { limit: 100, sort: '-created_at' });
    return { ...page, names: await customersOf(page.data.filter(isOpen)) };
  });
  const activity = useLoad(() => api.get('/v1/notifications', { limit: 25, 'search.user_id': me.id, sort: '-created_at' }));
  const growth = useLoad(() => (shows ? api.get('/v1/customers', { stack: 'created_at[YYYY-MM]', limit: 1, 'search.created_at': `${months[0].key}-01T00:00:00.000Z..` }) : null));
  useNotifications((item) => {
    if (!item) return activity.reload();
    activity.setData((was) => was && { ...was, data: [item, ...was.data.filter((one) => one.id !== item.id)].slice(0, 25) });
    if (item.rec_type === 'tasks') tasks.reload();
    return undefined;
  });
  const hour = new Date().getHours();
  return html`
    <${PageHead} title=${t(hour < 11 ? 'overview.morning' : hour < 18 ? 'overview.day' : 'overview.evening')} note=${longDay(new Date())} />
    <${Figures} shows=${shows} growth=${growth} months=${months} tasks=${tasks} activity=${activity} />
    <div class="grid-main">
      <div class="stack">${shows && html`<${Verification} />`}<${Tasks} load=${tasks} names=${tasks.data?.names ?? {}} /></div>
      <div class="stack">${shows && html`<${Growth} load=${growth} months=${months} />`}
        <${Card} title=${t('overview.activity')} aside=${html`<a class="more" href="/notifications">${t('overview.all_notifications')}<${Icon} name="right" size=${14} /></a>`}>
          <${Loaded} load=${activity} lines=${6}>${({ data }) => (data.length
            ? html`<${Activity} items=${data} most=${SHOWN} />`
            : html`<${Empty} icon="bell" title=${t('overview.quiet')}>${t('overview.quiet_text')}<//>`)}<//>
        <//>
      </div>
    </div>`;
}
