import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { fullName } from '../customers.js';
import { myId, useRights } from '../access.js';
import { dateTime, number } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live.js';
import { nameOf, usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { Avatar, Badge, Facts, Progress } from '../ui/data.js';
import { Empty, Loaded, toast, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { AssigneeName } from '../ui/person.js';
import { AssigneeDialog, TaskDialog } from './task_form.js';
import { NEXT } from './tasks.js';

function Assignee({ one, base, manages, reload }) {
  const mine = one.user_id === myId();
  const set = useAction(async (change) => {
    await api.patch(`${base}/assignees/${one.id}`, change);
    reload();
  });
  const remove = useAction(async () => {
    await api.delete(`${base}/assignees/${one.id}`);
    reload();
  });
  const open = (mine || manages) && !one.task_completed && one.status !== 'declined';
  return html`<li>
    <${Avatar} name=${nameOf(one.user_id)} />
    <div class="grow two-lines"><span><${AssigneeName} one=${one} /></span><span>${t('tasks.share', { n: number(one.weight) })}</span></div>
    <${Badge} group="assignee_status" value=${one.status} />
    ${open && one.status === 'assigned' && html`<button class="quiet small" disabled=${set.busy} onClick=${() => set.run({ status: 'accepted' })}>${t('tasks.accept')}</button>`}
    ${open && html`<button class="small" disabled=${set.busy} onClick=${() => set.run({ status: 'completed', task_completed: true })}>${t('tasks.done')}</button>`}
    ${manages && html`<button class="bare" aria-label=${t('tasks.unassign', { name: nameOf(one.user_id) })} disabled=${remove.busy} onClick=${remove.run}><${Icon} name="trash" size=${16} /></button>`}
  </li>`;
}

/** What a log entry tells, as one line. */
function changeOf(log) {
  const action = term('task_log', log.action);
  if (log.action === 'status_changed') return `${action}: ${term('task_status', log.to)}`;
  if (log.action === 'assignee_changed') return `${nameOf(log.user_id)}: ${term('assignee_status', log.to)}`;
  return log.user_id ? `${action}: ${nameOf(log.user_id)}` : action;
}

function Logs({ logs }) {
  usePeople();
  if (!logs.length) return html`<${Empty} icon="audit" title=${t('tasks.no_logs')} />`;
  return html`<ol class="timeline">${[...logs].reverse().map((log) => html`<li key=${log.at + log.action + (log.assignee_id ?? '')}>
    <p>${changeOf(log)}</p>${log.reason && html`<p class="prose">${log.reason}</p>`}<p class="fine">${dateTime(log.at)} · ${nameOf(log.by)}</p></li>`)}</ol>`;
}

/** One task: what it is, who does which part, what happened so far. */
export default function Task({ customer: customerId, id }) {
  usePrefs();
  usePeople();
  const [dialog, setDialog] = useState('');
  const base = `/v1/customers/${customerId}/tasks/${id}`;
  const load = useLoad(async () => {
    const { record: found, etag } = await api.tagged(base);
    return { ...found, etag };
  }, [id]);
  const customer = useLoad(() => api.get(`/v1/customers/${customerId}`).catch(() => null), [customerId]);
  const rights = useRights('tasks', id);
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  const move = useAction(async (status) => {
    await api.patch(`${base}/status`, { status });
    load.reload();
    toast(t('saved'));
  });
  const task = load.data;
  const next = task ? NEXT[task.status] ?? [] : [];
  const closeDialog = () => setDialog('');
  const saved = () => { closeDialog(); load.reload(); toast(t('saved')); };
  return html`
    <${PageHead} title=${task?.title ?? t('tasks.one')} back=${['/tasks', t('nav.tasks')]} note=${task && html`<span class="row"><${Badge} group="task_status" value=${task.status} /><${Badge} group="task_category" value=${task.category} />${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}</span>`}>
      ${task && rights.update && html`<button class="quiet" onClick=${() => setDialog('edit')}><${Icon} name="edit" size=${16} />${t('do.edit')}</button>`}
      ${rights.update && next.map((status) => html`<button key=${status} class=${status === next[0] ? '' : 'quiet'} disabled=${move.busy} onClick=${() => move.run(status)}>${term('task_move', status)}</button>`)}
    <//>
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="grid-main">
      <div class="stack">
        <${Card} title=${t('tasks.progress')}>
          <${Progress} part=${task.performed_weight} whole=${task.weight} label=${t('tasks.progress_of', { title: task.title })} />
          <p class="fine">${t('tasks.weights', { part: number(task.performed_weight), whole: number(task.weight) })}</p>
          ${task.description && html`<p class="prose">${task.description}</p>`}
        <//>
        <${Card} title=${t('tasks.assignees')} aside=${rights.update && next.length > 0 && html`<button class="quiet small" onClick=${() => setDialog('assign')}><${Icon} name="plus" size=${14} />${t('tasks.assign')}</button>`}>
          ${task.assignees?.length ? html`<ul class="items">${task.assignees.map((one) => html`<${Assignee} key=${one.id} one=${one} base=${base} manages=${rights.update} reload=${load.reload} />`)}</ul>` : html`<${Empty} icon="users" title=${t('tasks.no_assignees')} />`}
        <//>
      </div>
      <div class="stack">
        <${Card} title=${t('tasks.facts')}><${Facts} list rows=${[
          [t('customers.one'), html`<a href=${`/customers/${customerId}`}>${customer.data ? fullName(customer.data) : t('customers.open')}</a>`],
          [t('field.created_at'), dateTime(task.created_at)], [t('field.created_by'), nameOf(task.created_by)],
        ]} /><//>
        <${Card} title=${t('tasks.logs')}><${Logs} logs=${task.metadata?.logs ?? []} /><//>
      </div>
    </div>`}<//>
    ${dialog === 'edit' && html`<${TaskDialog} task=${task} etag=${task.etag} close=${closeDialog} done=${saved} />`}
    ${dialog === 'assign' && html`<${AssigneeDialog} base=${base} close=${closeDialog} done=${saved} />`}`;
}
