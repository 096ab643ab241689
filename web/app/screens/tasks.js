import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { customersOf, fullName } from '../customers.js';
import { deferred } from '../deferred.js';
import { day, number } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { nameOf, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { go } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Progress } from '../ui/display.js';
import { Empty, Loaded, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { People } from '../ui/person.js';
import { NoMatch } from '../ui/record_list.js';
import { openOnKeyDown } from '../ui/select_keyboard.js';
import { DueOn, dueSearch, OPEN } from './task_due.js';
import { TaskFilters } from './task_filters.js';
import { TaskDialog } from './task_form.js';
import { isClosed, LANES, NEXT, setStatus } from './task_status.js';

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
    <${DueOn} task=${task} />
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

function Lane({ status, lane, customers, move, dragged, drag, more }) {
  const accepts = dragged && (NEXT[dragged.status] ?? []).includes(status);
  const onDrop = (event) => {
    event.preventDefault();
    if (accepts) move(dragged, status);
  };
  return html`<section class=${`lane ${status}${accepts ? ' accepts' : ''}`} aria-label=${term('task_status', status)}
    onDragOver=${(event) => accepts && event.preventDefault()} onDrop=${onDrop}>
    <header><h2>${term('task_status', status)}</h2><span class="fine num">${number(lane.total)}</span></header>
    ${lane.rows.length
      ? html`<ul>${lane.rows.map((task) => html`
          <${TaskCard} key=${task.id} task=${task} customer=${customers[task.customer_id]} move=${move} drag=${drag} />`)}</ul>`
      : html`<p class="fine lane-empty">${t('tasks.lane_empty')}</p>`}
    ${lane.total > lane.rows.length && html`<button class="bare lane-more" onClick=${() => more(status)}>${t('tasks.more_tasks')}</button>`}
  </section>`;
}

const FIRST = { open: 20, closed: 6 }; // the tasks that a lane shows at first
const STEP = 20; // the tasks that "more" adds
const PAGE = 100; // the server's limit

/** Loads the first tasks of a lane, and how many there are. */
async function loadLane(params, status, shown) {
  const lane = { rows: [], total: 0 };
  const sort = isClosed(status) ? '-created_at' : '-is_urgent,due,-created_at';
  do {
    const limit = Math.min(PAGE, shown - lane.rows.length);
    const page = await api.get('/v1/tasks', { ...params, sort, 'search.status': status, limit, offset: lane.rows.length });
    lane.rows.push(...page.data);
    lane.total = page.total;
    if (!page.data.length) break;
  } while (lane.rows.length < Math.min(shown, lane.total));
  return lane;
}

/** The filters of the board and the list, in the address. */
function useFilters() {
  const { query, set } = useAddress();
  const get = (name) => query.get(name) ?? '';
  const state = { scope: get('scope'), assignee: get('assignee'), customer: get('customer'), due: get('due'), status: get('status') };
  return {
    state, set: (changes) => set({ offset: '', ...changes }), filtered: Object.values(state).some(Boolean),
    clear: () => set({ offset: '', assignee: '', customer: '', due: '', status: '' }),
  };
}

const paramsOf = ({ scope, assignee, customer, due }) => ({
  scope, assignee_id: assignee, 'search.customer_id': customer, ...dueSearch(due),
});

/** The lanes that a filter can fill: overdue tasks are open. */
const lanesOf = ({ status, due }) => (status ? [status] : due === 'overdue' ? OPEN : LANES);

/** Loads the lanes of the board. */
function useBoard(state) {
  const [shown, setShown] = useState({});
  const lanes = lanesOf(state);
  const key = JSON.stringify(state);
  useLayoutEffect(() => setShown({}), [key]); // A later effect could undo a click.
  const count = (status) => shown[status] ?? FIRST[isClosed(status) ? 'closed' : 'open'];
  const load = useLoad(async () => {
    const loaded = await Promise.all(lanes.map((status) => loadLane(paramsOf(state), status, count(status))));
    return {
      lanes: Object.fromEntries(lanes.map((status, i) => [status, loaded[i]])),
      customers: await customersOf(loaded.flatMap((lane) => lane.rows)),
    };
  }, [key, JSON.stringify(shown)]);
  return { ...load, more: (status) => setShown({ ...shown, [status]: count(status) + STEP }) };
}

/** The lanes after a task was moved. */
function moved(lanes, task, status) {
  if (!lanes[task.status]?.rows.some((one) => one.id === task.id)) return lanes;
  const without = { rows: lanes[task.status].rows.filter((one) => one.id !== task.id), total: lanes[task.status].total - 1 };
  const into = lanes[status] && { rows: [{ ...task, status }, ...lanes[status].rows], total: lanes[status].total + 1 };
  return { ...lanes, [task.status]: without, ...(into && { [status]: into }) };
}

/** The changes of status that can still be undone; the board shows them already. */
const useWaitingMoves = () => useStore(deferred).filter(({ task }) => task);

/** Moves a task to another status, shows that at once, and reverts it when the user undoes it or the server rejects it. */
function useMove(load, waiting) {
  const focused = useRef(''); // the id of a card that was moved by the keyboard: it keeps the focus in its new lane
  useEffect(() => {
    if (!focused.current) return;
    (document.querySelector(`main a[href$="/tasks/${focused.current}"]`) ?? document.querySelector('main h1'))?.focus();
    focused.current = '';
  }, [load.data, waiting.length]);
  return (task, status) => {
    if (!status) return;
    if (document.activeElement?.closest('.task')) focused.current = task.id;
    const before = load.data;
    const show = () => load.setData((was) => ({ ...was, lanes: moved(was.lanes, task, status) }));
    if (!isClosed(status)) show();
    setStatus(task, status, {
      done() {
        show();
        load.reload();
      },
      failed(error) {
        if (!isClosed(status)) load.setData(before);
        toastError(error);
        load.reload();
      },
    });
  };
}

/** Tasks as a board with a lane for each status. */
function Board({ filters, empty }) {
  const [dragged, drag] = useState(null);
  const load = useBoard(filters.state);
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  const waiting = useWaitingMoves();
  const changeStatus = useMove(load, waiting);
  const move = (task, status) => {
    drag(null);
    changeStatus(task, status);
  };
  const none = filters.filtered ? html`<${NoMatch} clear=${filters.clear} />` : empty;
  return html`
    <${TaskFilters} filters=${filters} customers=${load.data?.customers} />
    <${Loaded} load=${load} lines=${8}>${(board) => {
      const lanes = waiting.reduce((all, one) => moved(all, one.task, one.status), board.lanes);
      if (Object.values(lanes).every((lane) => !lane.total)) return html`<section class="card">${none}</section>`;
      return html`<div class="board">${lanesOf(filters.state).filter((status) => lanes[status]).map((status) => html`
        <${Lane} key=${status} status=${status} lane=${lanes[status]} customers=${board.customers} move=${move} dragged=${dragged}
          drag=${drag} more=${load.more} />`)}</div>`;
    }}<//>`;
}

/** Tasks as a list, whose module is loaded when it is shown. */
function List(props) {
  const load = useLoad(() => import('./task_list.js'));
  return html`<${Loaded} load=${load} lines=${8}>${({ TaskList }) => html`<${TaskList} paramsOf=${paramsOf} ...${props} />`}<//>`;
}

/** The caller's own tasks, or all that they may read: as a board, or as a list where several are changed together. */
export default function Tasks() {
  usePreferences();
  usePeople();
  const { query, set, beside } = useAddress();
  const filters = useFilters();
  const create = may('tasks', 'create') && html`<button onClick=${() => set({ new: 1 })}>
    <${Icon} name="plus" size=${16} />${t('tasks.new')}
  </button>`;
  const created = (task) => go(`/customers/${task.customer_id}/tasks/${task.id}`);
  const empty = html`<${Empty} icon="tasks" title=${t('tasks.none')} action=${create}>${t('tasks.none_text')}<//>`;
  const isList = beside || query.get('view') === 'list';
  return html`
    <${PageHead} title=${t('nav.tasks')} note=${isList ? t('work.list_note') : t('tasks.note')}>
      <button class="quiet" onClick=${() => set({ view: isList ? '' : 'list', sort: '', offset: '' })}>
        <${Icon} name=${isList ? 'columns' : 'menu'} size=${16} />${isList ? t('work.as_board') : t('work.as_list')}
      </button>
      ${create}
    <//>
    ${isList ? html`<${List} filters=${filters} empty=${empty} />` : html`<${Board} filters=${filters} empty=${empty} />`}
    ${query.get('new') && html`<${TaskDialog} close=${() => set({ new: '' })} done=${created} />`}`;
}
