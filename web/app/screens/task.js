import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { fullName } from '../customers.js';
import { useRights } from '../access.js';
import { deferred } from '../deferred.js';
import { date, dateTime, number } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { myId, nameOf, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { useRecordChanges } from '../record_changes.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Facts, Progress } from '../ui/display.js';
import { Empty, Loaded, toast, toastError, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { FileList } from '../ui/files.js';
import { Card, PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { WhoSees } from '../ui/who_sees.js';
import { AssigneeDialog, TaskDialog } from './task_form.js';
import { DueOn } from './task_due.js';
import { LogText } from './task_log.js';
import { moveKey, NEXT, setStatus } from './task_status.js';

function Assignee({ assignee, base, manages, reload }) {
  const path = `${base}/assignees/${assignee.id}`;
  const change = useAction(async (changes) => {
    await api.patch(path, changes);
    reload();
  });
  const remove = useAction(async () => {
    await api.delete(path);
    reload();
  });
  const isMine = assignee.user_id === myId();
  const isOpen = (isMine || manages) && !assignee.task_completed && assignee.status !== 'declined';
  const name = nameOf(assignee.user_id);
  return html`<li>
    <${Avatar} name=${name} />
    <div class="grow two-lines">
      <span><${Person} id=${assignee.user_id} /></span><span>${t('tasks.share', { n: number(assignee.weight) })}</span>
    </div>
    <${Badge} group="assignee_status" value=${assignee.status} />
    ${isOpen && assignee.status === 'assigned' && html`
      <button class="quiet small" disabled=${change.busy} onClick=${() => change.run({ status: 'accepted' })}>
        ${t('tasks.accept')}
      </button>`}
    ${isOpen && html`<button class="small" disabled=${change.busy}
      onClick=${() => change.run({ status: 'completed', task_completed: true })}>${t('tasks.done')}</button>`}
    ${manages && html`<button class="bare" aria-label=${t('tasks.unassign', { name })} disabled=${remove.busy} onClick=${remove.run}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

function Logs({ logs }) {
  if (!logs.length) return html`<${Empty} icon="audit" title=${t('tasks.no_logs')}>${t('tasks.no_logs_text')}<//>`;
  return html`<ol class="timeline">${[...logs].reverse().map((log) => html`<li key=${log.at + log.action + (log.assignee_id ?? '')}>
    <p><${LogText} log=${log} /></p>
    ${log.reason && html`<p class="prose">${log.reason}</p>`}
    <p class="fine">${dateTime(log.at)} · <${Person} id=${log.by} /></p>
  </li>`)}</ol>`;
}

function State({ task }) {
  return html`<span class="row">
    <${Badge} group="task_status" value=${task.status} /><${Badge} group="task_category" value=${task.category} />
    ${task.is_urgent && html`<${Badge} value=${t('tasks.urgent')} tone="warn" />`}<${DueOn} task=${task} />
  </span>`;
}

function ProgressCard({ task }) {
  const { performed_weight: part, weight: whole } = task;
  return html`<${Card} title=${t('tasks.progress')}>
    <${Progress} part=${part} whole=${whole} label=${t('tasks.progress_of', { title: task.title })} />
    <p class="fine">${t('tasks.weights', { part: number(part), whole: number(whole) })}</p>
    ${task.description && html`<p class="prose">${task.description}</p>`}
  <//>`;
}

function Assignees({ task, add, ...rest }) {
  const button = add && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${t('tasks.assign')}</button>`;
  return html`<${Card} title=${t('tasks.assignees')} aside=${button}>
    ${task.assignees?.length
      ? html`<ul class="items">${task.assignees.map((one) => html`<${Assignee} key=${one.id} assignee=${one} ...${rest} />`)}</ul>`
      : html`<${Empty} icon="users" title=${t('tasks.no_assignees')}>${t('tasks.no_assignees_text')}<//>`}
  <//>`;
}

function TaskFacts({ task }) {
  const customer = useLoad(() => api.get(`/v1/customers/${task.customer_id}`).catch(() => null), [task.customer_id]);
  const name = customer.data ? fullName(customer.data) : t('customers.open');
  return html`<${Card} title=${t('tasks.facts')}><${Facts} list rows=${[
    [t('customers.one'), html`<a href=${`/customers/${task.customer_id}`}>${name}</a>`],
    [t('tasks.due_on'), task.due_on && date(task.due_on)],
    [t('field.created_at'), dateTime(task.created_at)],
    [t('field.created_by'), html`<${Person} id=${task.created_by} />`],
  ]} /><//>`;
}

/** One task: its progress, its assignees and its log. */
export default function Task({ customer: customerId, id }) {
  usePreferences();
  usePeople();
  const [dialog, setDialog] = useState('');
  const base = `/v1/customers/${customerId}/tasks/${id}`;
  const load = useLoad(() => api.withETag(base), [id]);
  const rights = useRights('tasks', id);
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  useRecordChanges('tasks', id, load.reload);
  const task = load.data?.record;
  const waits = useStore(deferred, (all) => all.some(({ key }) => key === moveKey(id)));
  const move = useAction((status) => setStatus(task, status, { done: load.reload, failed: toastError }));
  const next = NEXT[task?.status] ?? [];
  const close = () => setDialog('');
  const saved = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  const moveButton = (status, i) => html`
    <button key=${status} class=${i === 0 ? '' : 'quiet'} disabled=${move.busy || waits} onClick=${() => move.run(status)}>
      ${term('task_move', status)}
    </button>`;
  return html`
    <${PageHead} title=${task?.title ?? t('tasks.one')} back=${['/tasks', t('nav.tasks')]} note=${task && html`<${State} task=${task} />`}>
      ${task && rights.update && html`<button class="quiet" onClick=${() => setDialog('edit')}>
        <${Icon} name="edit" size=${16} />${t('do.edit')}
      </button>`}
      ${rights.update && next.map(moveButton)}
      <${WhoSees} type="tasks" id=${id} />
    <//>
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="grid-main">
      <div class="stack">
        <${ProgressCard} task=${task} />
        <${Assignees} task=${task} base=${base} manages=${rights.update} reload=${load.reload}
          add=${rights.update && next.length > 0 && (() => setDialog('assign'))} />
        <${Card} title=${t('files.title')}>
          <${FileList} of=${{ type: 'tasks', parent: customerId, record: id }} readOnly=${!next.length} />
        <//>
      </div>
      <div class="stack">
        <${TaskFacts} task=${task} />
        <${Card} title=${t('tasks.logs')}><${Logs} logs=${task.metadata?.logs ?? []} /><//>
      </div>
    </div>`}<//>
    ${dialog === 'edit' && html`<${TaskDialog} task=${task} etag=${load.data.etag} close=${close} done=${saved} />`}
    ${dialog === 'assign' && html`<${AssigneeDialog} base=${base} close=${close} done=${saved} />`}`;
}
