import { html, useEffect, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live.js';
import { learn } from '../people.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Progress } from '../ui/data.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { openByKey } from '../ui/select.js';
import { TaskDialog } from './task_form.js';

const COLUMNS = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];
/** Where a task may go from each status, as the server allows it. */
export const NEXT = { pending: ['in_progress', 'completed', 'canceled', 'declined'], in_progress: ['completed', 'canceled', 'declined'] };

function TaskCard({ task, move, drag }) {
  const next = NEXT[task.status] ?? [];
  return html`<li class="task" draggable=${next.length > 0} onDragStart=${(event) => { event.dataTransfer.setData('text/plain', task.id); drag(task); }} onDragEnd=${() => drag(null)}>
    <div class="row"><${Badge} group="task_category" value=${task.category} />${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}</div>
    <a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a>
    <${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} />
    <div class="task-foot">
      <span class="faces">${(task.assignees ?? []).slice(0, 4).map((one) => html`<${Avatar} key=${one.id} name=${one.name} size="s" />`)}<span class="sr">${(task.assignees ?? []).map((one) => one.name).join(', ')}</span></span>
      ${next.length > 0 && html`<select class="move" aria-label=${t('tasks.move', { title: task.title })} value="" onKeyDown=${openByKey} onChange=${(event) => move(task, event.target.value)}>
        <option value="">${t('tasks.move_to')}</option>${next.map((status) => html`<option key=${status} value=${status}>${term('task_status', status)}</option>`)}
      </select>`}
    </div>
  </li>`;
}

function Column({ status, tasks, move, dragged, drag }) {
  const takes = dragged && (NEXT[dragged.status] ?? []).includes(status);
  return html`<section class=${`lane${takes ? ' takes' : ''}`} aria-label=${term('task_status', status)}
    onDragOver=${(event) => takes && event.preventDefault()} onDrop=${(event) => { event.preventDefault(); if (takes) move(dragged, status); }}>
    <header><h2>${term('task_status', status)}</h2><span class="fine num">${tasks.length}</span></header>
    ${tasks.length ? html`<ul>${tasks.map((task) => html`<${TaskCard} key=${task.id} task=${task} move=${move} drag=${drag} />`)}</ul>` : html`<p class="fine lane-empty">${t('tasks.lane_empty')}</p>`}
  </section>`;
}

/** The caller's tasks as a board: one lane for each status. */
export default function Tasks() {
  const { query } = useStore(route);
  const [dragged, drag] = useState(null);
  const load = useLoad(async () => {
    const page = await api.get('/v1/tasks', { limit: 100, sort: '-created_at' });
    for (const task of page.data) for (const one of task.assignees ?? []) learn(one.user_id, one.name);
    return page;
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
    <${Loaded} load=${load} lines=${8}>${({ data, total }) => (data.length
      ? html`<div class="board">${COLUMNS.map((status) => html`<${Column} key=${status} status=${status} tasks=${data.filter((task) => task.status === status)} move=${move} dragged=${dragged} drag=${drag} />`)}</div>
        ${total > data.length && html`<p class="fine">${t('tasks.newest', { n: data.length, total })}</p>`}`
      : html`<section class="card"><${Empty} icon="tasks" title=${t('tasks.none')} action=${create}>${t('tasks.none_text')}<//></section>`)}<//>
    ${query.get('new') && html`<${TaskDialog} close=${() => setQuery({ new: '' })} done=${(made) => go(`/customers/${made.customer_id}/tasks/${made.id}`)} />`}`;
}
