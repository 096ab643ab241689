import { html } from '../lib.js';
import { term } from '../i18n.js';
import { Person } from '../ui/person.js';

/** An entry of the task's log, as one line. */
export function LogText({ log }) {
  const action = term('task_log', log.action);
  if (log.action === 'status_changed') return `${action}: ${term('task_status', log.to)}`;
  if (log.action === 'assignee_changed') return html`<${Person} id=${log.user_id} />: ${term('assignee_status', log.to)}`;
  return log.user_id ? html`${action}: <${Person} id=${log.user_id} />` : action;
}
