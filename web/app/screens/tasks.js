import { html, useEffect, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { customersOf, fullName } from '../customers.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live.js';
import { nameOf, usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Progress } from '../ui/data.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { AssigneeName } from '../ui/person.js';
import { openByKey } from '../ui/select.js';
import { TaskDialog } from './task_form.js';

const COLUMNS = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];
/** Where a task may go from each status, as the server allows it. */
export const NEXT = { pending: ['in_progress', 'completed', 'canceled', 'declined'], in_progress: ['completed', 'canceled', 'declined'] };

const CLOSED = { completed: true, declined: true, canceled: true };
const AT_FIRST = 6; // of the tasks that have come to an end, in each lane

function TaskCard({ task, customer, move, drag }) {
  const next = NEXT[task.status] ?? [];
  const people = task.assignees ?? [];
  return html`<li class=${`task${CLOSED[task.status] ? ' closed' : ''}`} draggable=${next.length > 0} onDragStart=${(event) => { event.dataTransfer.setData('text/plain', task.id); drag(task); }} onDragEnd=${() => drag(null)}>
    <div class="task-kind"><${Icon} name=${`do_${task.category}`} size=${14} /><span class="grow">${term('task_category', task.category)}</span>${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}</div>
    <p><a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a>${customer && html`<span class="fine clip">${fullName(customer)}</span>`}</p>
    ${!CLOSED[task.status] && html`<${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} />`}
    <div class="task-foot">
      <span class="faces">${people.slice(0, 4).map((one) => html`<span key=${one.id} title=${nameOf(one.user_id)}><${Avatar} name=${nameOf(one.user_id)} size="s" /></span>`)}<span class="sr">${people.map((one, i) => html`${i ? ', ' : ''}<${AssigneeName} key=${one.id} one=${one} />`)}</span></span>
      ${next.length > 0 ? html`<span class="move"><${Icon} name="move" size=${16} /><select title=${t('tasks.move_to')} aria-label=${t('tasks.move', { title: task.title })} value="" onKeyDown=${openByKey} onChange=${(event) => move(task, event.target.value)}>
        <option value="">${t('tasks.move_to')}</option>${next.map((status) => html`<option key=${status} value=${status}>${term('task_status', status)}</option>`)}
      </select></span>` : html`<time class="fine" dateTime=${task.created_at}>${day(task.created_at)}</time>`}
    </div>
  </li>`;
}

function Column({ status, tasks, names, move, dragged, drag }) {
  const [all, setAll] = useState(!CLOSED[status]);
  const takes = dragged && (NEXT[dragged.status] ?? []).includes(status);
  const shown = all ? tasks : tasks.slice(0, AT_FIRST);
  return html`<section class=${`lane ${status}${takes ? ' takes' : ''}`} aria-label=${term('task_status', status)}
    onDragOver=${(event) => takes && event.preventDefault()} onDrop=${(event) => { event.preventDefault(); if (takes) move(dragged, status); }}>
    <header><h2>${term('task_status', status)}</h2><span class="fine num">${tasks.length}</span></header>
    ${tasks.length ? html`<ul>${shown.map((task) => html`<${TaskCard} key=${task.id} task=${task} customer=${names[task.customer_id]} move=${move} drag=${drag} />`)}</ul>` : html`<p class="fine lane-empty">${t('tasks.lane_empty')}</p>`}
    ${shown.length < tasks.length && html`<button class="bare lane-more" onClick=${() => setAll(true)}>${t('tasks.more', { n: tasks.length - shown.length })}</button>`}
  </section>`;
}

/** The caller's tasks as a board: one lane for each status. */
export default function Tasks() {
  usePrefs();
  usePeople();
  const { query } = useStore(route);
  const [dragged, drag] = useState(null);
  const load = useLoad(async () => {
    const page = await api.get('/v1/tasks', { limit: 100, sort: '-created_at' });
    return { ...page, names: await customersOf(page.data) };
  });
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  const moved = useRef('');
  useEffect(() => { // A card that was moved by the keyboard keeps the focus, in its new lane.
    if (!moved.current) return;
    (document.querySelector(`main a[href$="/tasks/${moved.current}"]`) ?? document.querySelector('main h1'))?.focus();
    moved.current = '';
  }, [load.data]);
  async function move(task, status) {
    drag(null);
    if (!status) return;
    if (document.activeElement?.closest('.task')) moved.current = task.id;
    const before = load.data;
    load.setData({ ...before, data: before.data.map((one) => (one.id === task.id ? { ...one, status } : one)) });
    try {
      await api.patch(`/v1/customers/${task.customer_id}/tasks/${task.id}/status`, { status });
      toast(t('tasks.moved', { title: task.title, status: term('task_status', status) }));
    } catch (error) {
      load.setData(before);
      toastError(error);
    }
    load.reload();
  }
  const create = may('tasks', 'create') && html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('tasks.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.tasks')} note=${t('tasks.note')}>${create}<//>
    <${Loaded} load=${load} lines=${8}>${({ data, total, names }) => (data.length
      ? html`<div class="board">${COLUMNS.map((status) => html`<${Column} key=${status} status=${status} tasks=${data.filter((task) => task.status === status)} names=${names} move=${move} dragged=${dragged} drag=${drag} />`)}</div>
        ${total > data.length && html`<p class="fine">${t('tasks.newest', { n: data.length, total })}</p>`}`
      : html`<section class="card"><${Empty} icon="tasks" title=${t('tasks.none')} action=${create}>${t('tasks.none_text')}<//></section>`)}<//>
    ${query.get('new') && html`<${TaskDialog} close=${() => setQuery({ new: '' })} done=${(made) => go(`/customers/${made.customer_id}/tasks/${made.id}`)} />`}`;
}
