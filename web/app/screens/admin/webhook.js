import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { t } from '../../i18n.js';
import { useList } from '../../list.js';
import { useLoad } from '../../load.js';
import { go } from '../../router.js';
import { loadStyle } from '../../style.js';
import { DateField } from '../../ui/date_field.js';
import { Badge, Facts, RecordId, When } from '../../ui/display.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, Notice, toast, useAction } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../../ui/filters.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Card, PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { RecordList } from '../../ui/record_list.js';
import { WhoSees } from '../../ui/who_sees.js';
import { failureText, SecretCreated, State, WebhookForm, valuesOf } from './webhook_form.js';

await loadStyle('admin');

const STATES = ['queued', 'sending', 'retrying', 'delivered', 'dead', 'withheld'];
const TONES = { delivered: 'good', retrying: 'warn', dead: 'bad' };
const nameOf = (state) => t(`webhooks.delivery.${state}`);

const factsOf = (row) => [
  [t('webhooks.type'), row.type],
  [t('webhooks.record'), row.rec_id && html`${row.rec_type} <${RecordId} id=${row.rec_id} />`],
  [t('webhooks.event'), html`<${RecordId} id=${row.event_id} />`],
  [t('field.state'), html`<${Badge} value=${nameOf(row.status)} tone=${TONES[row.status]} />`],
  [t('webhooks.attempts'), row.attempts],
  row.response_status && [t('webhooks.answer'), row.response_status],
  row.duration_ms !== null && [t('webhooks.duration'), `${row.duration_ms} ms`],
  row.last_error && [t('webhooks.error'), failureText(row.error_code, row.last_error)],
  row.next_attempt_at && [t('webhooks.next'), html`<${When} at=${row.next_attempt_at} exact />`],
  [t('webhooks.event_at'), html`<${When} at=${row.event_at} exact />`],
];

function DeliveryDialog({ path, row, close, done }) {
  const replay = useAction(async () => {
    await api.post(`${path}/deliveries/${row.id}/replay`);
    toast(t('webhooks.replayed'));
    done();
  });
  return html`<${Dialog} title=${row.type} close=${close} wide>
    <${Facts} rows=${factsOf(row)} />
    <div class="actions">
      ${row.finished_at && may('webhooks', 'update')
        && html`<button disabled=${replay.busy} onClick=${replay.run}>${t('webhooks.replay_one')}</button>`}
      <button class="quiet" onClick=${close}>${t('do.close')}</button>
    </div>
  <//>`;
}

const columnsOf = (open) => [
  {
    key: 'type', label: t('webhooks.type'),
    cell: (row) => html`<button class="link what" onClick=${() => open(row)}>${row.type}</button>`,
  },
  {
    key: 'status', label: t('field.state'), sort: 'status',
    cell: (row) => html`<${Badge} value=${nameOf(row.status)} tone=${TONES[row.status]} />`,
  },
  { key: 'answer', label: t('webhooks.answer'), num: true, cell: (row) => row.response_status },
  { key: 'attempts', minor: true, label: t('webhooks.attempts'), num: true, cell: (row) => row.attempts },
  { key: 'created', label: t('field.created_at'), sort: 'created_at', num: true, cell: (row) => html`<${When} at=${row.created_at} />` },
];

function ReplayDialog({ path, close, done }) {
  const yesterday = new Date(Date.now() - 24 * 3600e3).toISOString().slice(0, 10);
  const form = useForm({ since: yesterday }, async ({ since }) => {
    await api.post(`${path}/replay`, { since: `${since}T00:00:00Z` });
    close();
    done();
    toast(t('webhooks.replayed'));
  });
  return html`<${Dialog} title=${t('webhooks.replay')} close=${close}><${Form} form=${form}>
    <${DateField} form=${form} name="since" label=${t('webhooks.since')} hint=${t('webhooks.since_hint')} />
    <${Actions} form=${form} label=${t('webhooks.replay')} cancel=${close} />
  <//><//>`;
}

function Deliveries({ path }) {
  const [open, setOpen] = useState(null);
  const [replaying, setReplaying] = useState(false);
  const list = useList(`${path}/deliveries`, { filters: ['status'], sort: '-created_at' });
  const close = () => setOpen(null);
  const done = () => {
    close();
    list.reload();
  };
  const test = useAction(async () => {
    await api.post(`${path}/test`);
    toast(t('webhooks.tested'));
    list.reload();
  });
  return html`<${Card} title=${t('webhooks.deliveries')} aside=${html`<div class="page-actions">
      <button class="quiet small" onClick=${list.reload}>${t('webhooks.reload')}</button>
      ${may('webhooks', 'update') && html`
        <button class="quiet small" onClick=${() => setReplaying(true)}>${t('webhooks.replay')}</button>
        <button class="quiet small" disabled=${test.busy} onClick=${test.run}>${t('webhooks.test')}</button>`}</div>`}>
    <${Filters}><${Filter} label=${t('field.state')} value=${list.state.status} onChange=${(status) => list.set({ status })}
      options=${optionsOf(STATES, nameOf)} /><//>
    <${RecordList} list=${list} title=${t('webhooks.deliveries')} columns=${columnsOf(setOpen)}
      empty=${html`<${Empty} icon="deliveries" title=${t('webhooks.no_deliveries')}>${t('webhooks.no_deliveries_text')}<//>`} />
    ${open && html`<${DeliveryDialog} path=${path} row=${open} close=${close} done=${done} />`}
    ${replaying && html`<${ReplayDialog} path=${path} close=${() => setReplaying(false)} done=${list.reload} />`}
  <//>`;
}

function EditDialog({ path, webhook, close, done }) {
  const { url, description, types, include_record: record } = webhook;
  const form = useForm({ url, description, types: types.join(', '), include_record: record }, async (values) => {
    await api.patch(path, valuesOf(values));
    close();
    done();
    toast(t('saved'));
  });
  return html`<${Dialog} title=${t('do.edit')} close=${close}>
    <${WebhookForm} form=${form} label=${t('do.save')} cancel=${close} />
  <//>`;
}

function RotateDialog({ path, close, done }) {
  const [secret, setSecret] = useState('');
  const form = useForm({ overlap_hours: 24 }, async (values) => {
    setSecret((await api.post(`${path}/secret`, { overlap_hours: Number(values.overlap_hours) })).secret);
    done();
  });
  if (secret) return html`<${SecretCreated} key="created" secret=${secret} close=${close} />`;
  return html`<${Dialog} key="new" title=${t('webhooks.rotate')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="overlap_hours" type="number" min="0" max="168" label=${t('webhooks.overlap')}
      hint=${t('webhooks.overlap_hint')} />
    <${Actions} form=${form} label=${t('webhooks.rotate')} cancel=${close} />
  <//><//>`;
}

function Head({ path, webhook, reload }) {
  const [dialog, setDialog] = useState('');
  const close = () => setDialog('');
  const set = useAction(async (status) => {
    await api.patch(path, { status });
    reload();
    toast(t('saved'));
  });
  const remove = useAction(async () => {
    if (!(await confirm({ title: t('webhooks.delete'), text: t('webhooks.delete_text'), action: t('webhooks.delete') }))) return;
    await api.delete(path);
    go('/admin/webhooks');
    toast(t('webhooks.deleted'));
  });
  const active = webhook.status === 'active';
  const change = may('webhooks', 'update');
  const note = html`<${State} webhook=${webhook} />`;
  return html`<${PageHead} title=${new URL(webhook.url).host} back=${['/admin/webhooks', t('nav.webhooks')]} note=${note}>
    ${change && html`<button class="quiet" onClick=${() => setDialog('edit')}>${t('do.edit')}</button>
      <button class="quiet" onClick=${() => setDialog('rotate')}>${t('webhooks.rotate')}</button>
      <button class=${active ? 'quiet' : ''} disabled=${set.busy} onClick=${() => set.run(active ? 'paused' : 'active')}>
        ${t(active ? 'webhooks.pause' : 'webhooks.resume')}
      </button>`}
    ${may('webhooks', 'delete')
      && html`<button class="quiet danger" disabled=${remove.busy} onClick=${remove.run}>${t('webhooks.delete')}</button>`}
    <${WhoSees} type="webhooks" id=${webhook.id} />
    ${dialog === 'edit' && html`<${EditDialog} path=${path} webhook=${webhook} close=${close} done=${reload} />`}
    ${dialog === 'rotate' && html`<${RotateDialog} path=${path} close=${close} done=${reload} />`}
  <//>`;
}

/** One webhook with its deliveries. */
export default function Webhook({ id }) {
  const path = `/v1/webhooks/${id}`;
  const load = useLoad(() => api.get(path), [id]);
  const facts = (webhook) => [
    [t('webhooks.url'), webhook.url],
    webhook.description && [t('webhooks.description'), webhook.description],
    [t('webhooks.account'), html`<${Person} id=${webhook.account_id} />`],
    [t('webhooks.types'), webhook.types.join(', ') || t('webhooks.all_types')],
    [t('webhooks.include_record'), t(webhook.include_record ? 'do.yes' : 'do.no')],
    [t('webhooks.delivered_at'), html`<${When} at=${webhook.delivered_at} exact />`],
    webhook.failing_since && [t('webhooks.failing_since'), html`<${When} at=${webhook.failing_since} exact />`],
    webhook.former_secret_until && [t('webhooks.former_until'), html`<${When} at=${webhook.former_secret_until} exact />`],
    [t('field.created_at'), html`<${When} at=${webhook.created_at} exact />`],
    [t('field.id'), html`<${RecordId} id=${id} />`],
  ];
  return html`<${Loaded} load=${load} lines=${8}>${(webhook) => html`
    <${Head} path=${path} webhook=${webhook} reload=${load.reload} />
    <div class="stack">
      ${webhook.reason && html`<${Notice} tone="warn">${t(`webhooks.reason.${webhook.reason}`)}<//>`}
      <${Card} title=${t('webhooks.webhook')}><${Facts} list rows=${facts(webhook)} /><//>
      <${Deliveries} path=${path} />
    </div>`}<//>`;
}
