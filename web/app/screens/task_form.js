import { html, useMemo, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { fullName } from '../customers.js';
import { t, term } from '../i18n.js';
import { DateField } from '../ui/date_field.js';
import { Dialog } from '../ui/dialog.js';
import { Actions, Field, Form, useEditedRecord, useForm } from '../ui/form.js';
import { CustomerPicker, UserPicker } from '../ui/picker.js';
import { ChosenUsers } from './chosen_users.js';
import { useNewerRecord } from './newer_record.js';

const CATEGORIES = ['sign', 'approve', 'update', 'delete'];

const BLANK = { title: '', description: '', category: 'approve', due_on: '', is_urgent: false, weight: 1 };
const valuesOf = (task) => Object.fromEntries(Object.entries(BLANK).map(([name, blank]) => [name, task?.[name] ?? blank]));

/** Chooses the assignees of a new task. */
function NewAssignees({ users, setUsers, error }) {
  const add = (user) => setUsers((was) => (was.some(({ id }) => id === user.id) ? was : [...was, user]));
  const remove = (id) => setUsers((was) => was.filter((one) => one.id !== id));
  return html`
    <${UserPicker} several label=${t('tasks.assignees')} pick=${add} error=${error} />
    ${users.length > 0 && html`<${ChosenUsers} label=${t('tasks.assignees')} users=${users} remove=${remove} />`}`;
}

/** The first error about an assignee: the server names them by their place. */
const assigneeError = (errors) => Object.entries(errors).find(([name]) => name.startsWith('assignees'))?.[1];

/** Creates a task for a customer, with its assignees, or changes one. */
export function TaskDialog({ task, etag, customer, close, done }) {
  const key = useMemo(idempotencyKey, []);
  const [users, setUsers] = useState([]);
  const path = `/v1/customers/${task?.customer_id}/tasks/${task?.id}`;
  const edited = useEditedRecord(path, task, etag);
  const initial = { customer_id: customer?.id ?? task?.customer_id ?? '', ...valuesOf(task) };
  const form = useForm(initial, async ({ customer_id: owner, ...values }) => {
    const body = { ...values, due_on: values.due_on || null, is_urgent: Boolean(values.is_urgent), weight: Number(values.weight) };
    if (task) return done(await api.put(path, body, edited.match));
    body.assignees = users.map(({ id }) => ({ user_id: id, weight: 1 }));
    return done(await api.post(`/v1/customers/${owner}/tasks`, body, { headers: { 'Idempotency-Key': key } }));
  }, task && (async () => valuesOf(await edited.reload())));
  useNewerRecord(form, edited, etag);
  const ready = Boolean(form.values.customer_id);
  return html`<${Dialog} title=${task ? t('tasks.edit') : t('tasks.new')} close=${close}>
    <${Form} form=${form}>
      ${customer && html`<p><span class="fine">${t('customers.one')}</span><br /><strong>${fullName(customer)}</strong></p>`}
      ${!customer && !task && html`<${CustomerPicker} form=${form} name="customer_id" />`}
      <${Field} form=${form} name="title" label=${t('tasks.title')} autocomplete="off" />
      <${Field} form=${form} name="description" label=${t('tasks.description')} rows=${3} optional />
      <div class="fields">
        <${Field} form=${form} name="category" label=${t('tasks.category')}
          options=${CATEGORIES.map((category) => [category, term('task_category', category)])} />
        <${DateField} form=${form} name="due_on" label=${t('tasks.due_on')} optional />
      </div>
      ${!task && html`<${NewAssignees} users=${users} setUsers=${setUsers} error=${assigneeError(form.errors)} />`}
      ${!users.length && html`
        <${Field} form=${form} name="weight" type="number" min="0" label=${t('tasks.weight')} hint=${t('tasks.weight_hint')} />`}
      <${Field} form=${form} name="is_urgent" type="checkbox" label=${t('tasks.is_urgent')} />
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
        <button type="submit" disabled=${form.busy || !ready}>${task ? t('do.save') : t('tasks.create')}</button>
      </div>
    <//>
  <//>`;
}

/** Assigns a part of a task to a user. */
export function AssigneeDialog({ base, close, done }) {
  const form = useForm({ user_id: '', weight: 1 },
    async (values) => done(await api.post(`${base}/assignees`, { ...values, weight: Number(values.weight) })));
  return html`<${Dialog} title=${t('tasks.assign')} close=${close}>
    <${Form} form=${form}>
      <${UserPicker} label=${t('tasks.assignee')} pick=${({ id }) => form.set('user_id', id)} error=${form.errors.user_id} />
      <${Field} form=${form} name="weight" type="number" min="0" label=${t('tasks.weight')} />
      <${Actions} form=${form} label=${t('tasks.assign')} cancel=${close} />
    <//>
  <//>`;
}
