import { html, useEffect, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { customersOf, fullName } from '../customers.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { nameOf, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Progress } from '../ui/display.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { People } from '../ui/person.js';
import { openOnKeyDown } from '../ui/select_keyboard.js';
import { TaskDialog } from './task_form.js';

const LANES = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];

/** The statuses that may follow each status, as the server allows them. */
export const NEXT = {
  pending: ['in_progress', 'completed', 'canceled', 'declined'],
  in_progress: ['completed', 'canceled', 'declined'],
};

const isClosed = (status) => !NEXT[status];
const FIRST_CLOSED = 6; // closed tasks that a lane shows at first
const MAX_FACES = 4; // pictures of assignees on a card

/** The assignees of a task: their pictures, and their names for screen readers. */
function Assignees({ ids }) {
  return html`<span class="faces">
    ${ids.slice(0, MAX_FACES).map((id) => html`<span key=${id} title=${nameOf(id)}><${Avatar} name=${nameOf(id)} size="s" /></span>`)}
    <span class="sr"><${People} ids=${ids} /></span>
  </span>`;
}

/** The choice of a task's next status. */
function MoveSelect({ task, next, move }) {
  return html`<span class="move">
    <${Icon} name="move" size=${16} />
    <select title=${t('tasks.move_to')} aria-label=${t('tasks.move', { title: task.title })} value="" onKeyDown=${openOnKeyDown}
      onChange=${(event) => move(task, event.target.value)}>
      <option value="">${t('tasks.move_to')}</option>
      ${next.map((status) => html`<option key=${status} value=${status}>${term('task_status', status)}</option>`)}
    </select>
  </span>`;
}

function TaskCard({ task, customer, move, drag }) {
  const next = NEXT[task.status] ?? [];
  const closed = isClosed(task.status);
  const onDragStart = (event) => {
    event.dataTransfer.setData('text/plain', task.id);
    drag(task);
  };
  return html`<li class=${`task${closed ? ' closed' : ''}`} draggable=${!closed} onDragStart=${onDragStart} onDragEnd=${() => drag(null)}>
    <div class="task-kind">
      <${Icon} name=${`do_${task.category}`} size=${14} /><span class="grow">${term('task_category', task.category)}</span>
      ${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}
    </div>
    <p>
      <a class="plain" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a>
      ${customer && html`<span class="fine clip">${fullName(customer)}</span>`}
    </p>
    ${!closed && html`<${Progress} part=${task.performed_weight} whole=${task.weight}
      label=${t('tasks.progress_of', { title: task.title })} />`}
    <div class="task-foot">
      <${Assignees} ids=${(task.assignees ?? []).map((one) => one.user_id)} />
      ${closed
        ? html`<time class="fine" dateTime=${task.created_at}>${day(task.created_at)}</time>`
        : html`<${MoveSelect} task=${task} next=${next} move=${move} />`}
    </div>
  </li>`;
}

function Lane({ status, tasks, customers, move, dragged, drag }) {
  const [all, setAll] = useState(!isClosed(status));
  const accepts = dragged && (NEXT[dragged.status] ?? []).includes(status);
  const shown = all ? tasks : tasks.slice(0, FIRST_CLOSED);
  const hidden = tasks.length - shown.length;
  const onDrop = (event) => {
    event.preventDefault();
    if (accepts) move(dragged, status);
  };
  return html`<section class=${`lane ${status}${accepts ? ' accepts' : ''}`} aria-label=${term('task_status', status)}
    onDragOver=${(event) => accepts && event.preventDefault()} onDrop=${onDrop}>
    <header><h2>${term('task_status', status)}</h2><span class="fine num">${tasks.length}</span></header>
    ${tasks.length
      ? html`<ul>${shown.map((task) => html`
          <${TaskCard} key=${task.id} task=${task} customer=${customers[task.customer_id]} move=${move} drag=${drag} />`)}</ul>`
      : html`<p class="fine lane-empty">${t('tasks.lane_empty')}</p>`}
    ${hidden > 0 && html`<button class="bare lane-more" onClick=${() => setAll(true)}>${t('tasks.more', { n: hidden })}</button>`}
  </section>`;
}

function Board({ data, total, ...rest }) {
  const ofStatus = (status) => data.filter((task) => task.status === status);
  return html`
    <div class="board">${LANES.map((status) => html`
      <${Lane} key=${status} status=${status} tasks=${ofStatus(status)} ...${rest} />`)}
    </div>
    ${total > data.length && html`<p class="fine">${t('tasks.newest', { n: data.length, total })}</p>`}`;
}

/** Moves a task to another status, shows that at once, and reverts it when the server rejects it. */
function useMove(load) {
  const moved = useRef(''); // the id of a card that was moved by the keyboard: it keeps the focus in its new lane
  useEffect(() => {
    if (!moved.current) return;
    (document.querySelector(`main a[href$="/tasks/${moved.current}"]`) ?? document.querySelector('main h1'))?.focus();
    moved.current = '';
  }, [load.data]);
  return async (task, status) => {
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
  };
}

/** The caller's tasks as a board with a lane for each status. */
export default function Tasks() {
  usePreferences();
  usePeople();
  const { query } = useStore(route);
  const [dragged, drag] = useState(null);
  const load = useLoad(async () => {
    const page = await api.get('/v1/tasks', { limit: 100, sort: '-created_at' });
    return { ...page, customers: await customersOf(page.data) };
  });
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  const changeStatus = useMove(load);
  const move = (task, status) => {
    drag(null);
    changeStatus(task, status);
  };
  const create = may('tasks', 'create') && html`<button onClick=${() => setQuery({ new: 1 })}>
    <${Icon} name="plus" size=${16} />${t('tasks.new')}
  </button>`;
  const created = (task) => go(`/customers/${task.customer_id}/tasks/${task.id}`);
  return html`
    <${PageHead} title=${t('nav.tasks')} note=${t('tasks.note')}>${create}<//>
    <${Loaded} load=${load} lines=${8}>${(page) => (page.data.length
      ? html`<${Board} ...${page} move=${move} dragged=${dragged} drag=${drag} />`
      : html`<section class="card">
          <${Empty} icon="tasks" title=${t('tasks.none')} action=${create}>${t('tasks.none_text')}<//>
        </section>`)}<//>
    ${query.get('new') && html`<${TaskDialog} close=${() => setQuery({ new: '' })} done=${created} />`}`;
}
