import { html, useState } from '../lib.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { customersOf, fullName } from '../customers.js';
import { day } from '../format.js';
import { t, term } from '../i18n.js';
import { useListSettings } from '../list_settings.js';
import { useNotifications } from '../live_updates.js';
import { useLoad } from '../load.js';
import { Badge, Dash } from '../ui/display.js';
import { Dialog } from '../ui/dialog.js';
import { People } from '../ui/person.js';
import { UserPicker } from '../ui/picker.js';
import { RecordList } from '../ui/record_list.js';
import { DueOn, OPEN } from './task_due.js';
import { TaskFilters } from './task_filters.js';
import { isClosed, NEXT } from './task_status.js';

const LIMIT = 20;
const SORT = '-created_at';

const pathOf = (task) => `/customers/${task.customer_id}/tasks/${task.id}`;
const assigneesOf = (task) => (task.assignees ?? []).map((one) => one.user_id);

const columnsOf = (customers) => [
  { key: 'title', label: t('tasks.title'), sort: 'title', cell: (row) => row.title },
  {
    key: 'status', beside: true, label: t('tasks.status'), sort: 'status',
    cell: (row) => html`<${Badge} group="task_status" value=${row.status} />`,
  },
  { key: 'customer', minor: true, label: t('customers.one'), cell: (row) => fullName(customers[row.customer_id]) || html`<${Dash} />` },
  { key: 'due', label: t('tasks.due_on'), sort: 'due',
    cell: (row) => (row.due_on ? html`<${DueOn} task=${row} short />` : html`<${Dash} />`) },
  {
    key: 'assignees', minor: true, label: t('tasks.assignees'),
    cell: (row) => (row.assignees?.length ? html`<${People} ids=${assigneesOf(row)} />` : html`<${Dash} />`),
  },
  { key: 'category', minor: true, wide: true, label: t('tasks.category'), cell: (row) => term('task_category', row.category) },
  { key: 'created', minor: true, wide: true, label: t('field.created_at'), sort: 'created_at', cell: (row) => day(row.created_at) },
];

/** Loads the tasks that the filters select. The filters are those of the board, whose parameters are not all searches. */
function useTasks(filters, paramsOf) {
  const { query, path: screen, set } = useAddress();
  const { limit, ...settings } = useListSettings(screen, LIMIT);
  const offset = Math.max(0, Number(query.get('offset')) || 0);
  const sort = query.get('sort') || SORT;
  const { status, due } = filters.state;
  const open = due === 'overdue' ? OPEN.join() : ''; // Tasks that have ended are not overdue.
  const selected = { sort, ...paramsOf(filters.state), 'search.status': status || open };
  const params = { ...selected, limit, offset };
  const load = useLoad(async () => {
    const page = await api.get('/v1/tasks', params);
    return { ...page, customers: await customersOf(page.data) };
  }, [JSON.stringify(params)]);
  return {
    ...load, limit, ...settings, path: '/v1/tasks', selected, set: filters.set, state: { offset, sort },
    filtered: filters.filtered, clear: filters.clear,
    move: (to, { replace = false } = {}) => set({ offset: to || '' }, { replace }),
  };
}

/** Asks for the user to whom the selected tasks are assigned. */
function AssigneeQuestion({ answer }) {
  const [chosen, setChosen] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    answer(chosen);
  };
  return html`<${Dialog} title=${t('work.assign')} close=${() => answer(null)}>
    <form onSubmit=${submit}>
      <${UserPicker} label=${t('tasks.assignee')} chosen=${chosen?.name} pick=${(user) => setChosen(user.id ? user : null)} />
      <div class="actions">
        <button type="button" class="quiet" onClick=${() => answer(null)}>${t('do.cancel')}</button>
        <button type="submit" disabled=${!chosen}>${t('tasks.assign')}</button>
      </div>
    </form>
  <//>`;
}

/** The action that sets a status; it can be undone for ten seconds where nothing can follow that status. */
const statusAction = (status) => ({
  key: status, label: term('task_move', status), danger: status === 'canceled',
  fits: (row) => (NEXT[row.status] ?? []).includes(status),
  each: (row, extra, options) => api.patch(`/v1${pathOf(row)}/status`, { status }, options),
  later: (rows) => isClosed(status) && t('work.close_selected', { n: rows.length, status: term('task_status', status) }),
});

/** Replaces the assignees of a task by one user, who takes over their weight. */
async function reassign(task, user) {
  const path = `/v1${pathOf(task)}/assignees`;
  const others = (task.assignees ?? []).filter((one) => one.user_id !== user.id);
  const weight = others.reduce((sum, one) => sum + one.weight, 0) || 1;
  if (others.length === (task.assignees ?? []).length) await api.post(path, { user_id: user.id, weight });
  for (const one of others) await api.delete(`${path}/${one.id}`);
}

/** The actions for selected tasks. The server checks the right to each of them. */
const bulkActions = (askUser) => [
  {
    key: 'assign', label: t('work.assign'), icon: 'users', fits: (row) => !isClosed(row.status), prepare: askUser,
    each: (row, user) => api.post(`/v1${pathOf(row)}/assignees`, { user_id: user.id, weight: 1 }),
  },
  {
    key: 'reassign', label: t('work.reassign'), icon: 'refresh', prepare: askUser, each: reassign,
    fits: (row) => !isClosed(row.status) && row.assignees?.length > 0 && row.assignees.every((one) => !one.task_completed),
  },
  ...NEXT.pending.map(statusAction),
];

/** Tasks as a list, in which several can be selected and changed. */
export function TaskList({ filters, paramsOf, empty }) {
  const [question, setQuestion] = useState(null);
  const list = useTasks(filters, paramsOf);
  useNotifications((item) => (!item || item.rec_type === 'tasks') && list.reload());
  const askUser = () => new Promise((resolve) => {
    setQuestion({
      answer(user) {
        setQuestion(null);
        resolve(user);
      },
    });
  });
  return html`
    <${TaskFilters} filters=${filters} customers=${list.data?.customers} />
    <${RecordList} list=${list} title=${t('nav.tasks')} columns=${columnsOf(list.data?.customers ?? {})} link=${pathOf}
      nameOf=${(row) => row.title} bulk=${bulkActions(askUser)} empty=${empty} live="tasks.*" />
    ${question && html`<${AssigneeQuestion} answer=${question.answer} />`}`;
}
