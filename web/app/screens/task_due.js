import { html } from '../lib.js';
import { dayFromToday } from '../dates.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { Icon } from '../ui/icon.js';

/** The statuses of a task that has not ended. */
export const OPEN = ['pending', 'in_progress'];

/** Whether a task has not ended after the day by which it should have. */
export const isOverdue = (task) => Boolean(task.due_on) && OPEN.includes(task.status) && task.due_on < dayFromToday();

/** The day by which a task should be done; in words and colour when it is overdue. short: the day alone, in a column of its own. */
export function DueOn({ task, short }) {
  if (!task.due_on) return null;
  const late = isOverdue(task);
  const text = t(late ? 'tasks.overdue_since' : 'tasks.due_at', { date: date(task.due_on) });
  return html`<span class=${`due${late ? ' late' : ''}`}><${Icon} name=${late ? 'warning' : 'clock'} size=${13} />
    ${short ? html`<span aria-hidden="true" title=${text}>${date(task.due_on)}</span><span class="sr">${text}</span>` : text}</span>`;
}

/** The values of the filter by due date, and what they search for. Overdue tasks are open ones. */
export const DUE = ['overdue', 'today', 'week', 'none'];
export const dueSearch = (value) => ({
  overdue: { 'search.due_on': `..${dayFromToday(-1)}` },
  today: { 'search.due_on': dayFromToday() },
  week: { 'search.due_on': `${dayFromToday()}..${dayFromToday(6)}` },
  none: { 'search.due_on': 'null' },
}[value] ?? {});
