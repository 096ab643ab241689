import { html } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { fullName } from '../customers.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf } from '../people.js';
import { Filter, Filters, optionsOf } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { CustomerPicker, UserPicker } from '../ui/picker.js';
import { DUE } from './task_due.js';

const STATUSES = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];
const DUE_TEXT = { overdue: 'tasks.overdue', today: 'tasks.due_today', week: 'tasks.due_week', none: 'tasks.due_none' };

/** A filter by a record that was chosen: its name, and a button that removes the filter. */
const Chosen = ({ label, name, remove }) => html`<div class="filter set">
  <span class="filter-label">${label}</span>
  <button type="button" class="chip" aria-label=${t('tasks.anyone', { name })} onClick=${remove}>
    <bdi class="person-name">${name}</bdi><${Icon} name="close" size=${12} />
  </button>
</div>`;

function AssigneeFilter({ value, set }) {
  if (value) return html`<${Chosen} label=${t('tasks.assignee')} name=${nameOf(value)} remove=${() => set({ assignee: '' })} />`;
  return html`<${UserPicker} several hint="" label=${t('tasks.assignee')} pick=${({ id }) => set({ assignee: id })} />`;
}

function CustomerFilter({ value, set, customers }) {
  const known = customers?.[value];
  const load = useLoad(() => (value && !known ? api.get(`/v1/customers/${value}`).catch(() => null) : null), [value, Boolean(known)]);
  if (value) {
    const name = fullName(known ?? load.data) || t('customers.one');
    return html`<${Chosen} label=${t('customers.one')} name=${name} remove=${() => set({ customer: '' })} />`;
  }
  return html`<${CustomerPicker} hint="" form=${{ errors: {}, set: (_, id) => set({ customer: id }) }} name="customer" />`;
}

/** The filters of the board: whose tasks, of whom, about whom, by when, in which state. */
export function TaskFilters({ filters, customers }) {
  const { state, set } = filters;
  return html`<${Filters}>
    ${may('tasks', 'read_all') && html`<${Filter} label=${t('tasks.scope')} value=${state.scope} all=${t('tasks.mine')}
      options=${[['all', t('tasks.team')]]} onChange=${(scope) => set({ scope })} />`}
    <${Filter} label=${t('tasks.due')} value=${state.due} onChange=${(due) => set({ due })}
      options=${optionsOf(DUE, (value) => t(DUE_TEXT[value]))} />
    <${Filter} label=${t('tasks.status')} value=${state.status} onChange=${(status) => set({ status })}
      options=${optionsOf(STATUSES, (value) => term('task_status', value))} />
    ${may('tasks', 'read_all') && html`
      <${AssigneeFilter} value=${state.assignee} set=${set} />
      <${CustomerFilter} value=${state.customer} set=${set} customers=${customers} />`}
  <//>`;
}
