import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { dateTime } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { reauthenticate } from '../../session.js';
import { Badge, Facts, When } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, toast, useAction } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';

const STATES = ['queued', 'sending', 'sent', 'retrying', 'dead'];

const factsOf = (row) => [
  [t('deliveries.to'), row.to],
  [t('deliveries.channel'), term('channel', row.channel)],
  [t('field.state'), html`<${Badge} group="delivery_status" value=${row.status} />`],
  [t('deliveries.attempts'), row.attempts],
  [t('field.created_at'), dateTime(row.created_at)],
  [t('deliveries.sent_at'), dateTime(row.sent_at)],
  row.status === 'retrying' && [t('deliveries.next'), dateTime(row.next_attempt_at)],
];

const TextBlock = ({ title, text }) => text && html`<div><h3>${title}</h3><pre tabindex="0">${text}</pre></div>`;

function DeliveryDialog({ row, close, done, reload }) {
  const retry = useAction(async () => {
    await api.post(`/v1/notifications/deliveries/${row.id}/retry`);
    toast(t('deliveries.retried'));
    done();
  });
  const show = useAction(async () => {
    if (await reauthenticate('fresh')) reload();
  });
  const canRetry = row.status === 'dead' || row.status === 'retrying';
  return html`<${Dialog} title=${row.subject || term('channel', row.channel)} close=${close} wide>
    <${Facts} rows=${factsOf(row)} />
    <${TextBlock} title=${t('deliveries.error')} text=${row.last_error} />
    <${TextBlock} title=${t('deliveries.text')} text=${row.text} />
    <div class="actions">
      ${row.masked && html`<button disabled=${show.busy} onClick=${show.run}>${t('deliveries.show_secret')}</button>`}
      ${canRetry && html`<button disabled=${retry.busy} onClick=${retry.run}>${t('deliveries.retry')}</button>`}
      <button class="quiet" onClick=${close}>${t('do.close')}</button>
    </div>
  <//>`;
}

const nameOf = (row) => row.subject || row.text?.slice(0, 60) || row.id;

const columnsOf = (open) => [
  {
    key: 'message', label: t('deliveries.message'),
    cell: (row) => html`<button class="link what" onClick=${() => open(row)}>${nameOf(row)}</button>`,
  },
  { key: 'to', label: t('deliveries.to'), cell: (row) => row.to },
  { key: 'channel', wide: true, label: t('deliveries.channel'), cell: (row) => term('channel', row.channel) },
  {
    key: 'status', label: t('field.state'), sort: 'status',
    cell: (row) => html`<${Badge} group="delivery_status" value=${row.status} />`,
  },
  { key: 'attempts', wide: true, label: t('deliveries.attempts'), num: true, cell: (row) => row.attempts },
  {
    key: 'created', label: t('field.created_at'), sort: 'created_at', num: true,
    cell: (row) => html`<${When} at=${row.created_at} />`,
  },
];

/** The deliveries by e-mail and SMS, with those that failed. */
export default function Deliveries() {
  const [open, setOpen] = useState(null);
  const list = useList('/v1/notifications/deliveries', { filters: ['status', 'channel'], sort: '-created_at' });
  const close = () => setOpen(null);
  const done = () => {
    close();
    list.reload();
  };
  const row = open && (list.data?.data.find(({ id }) => id === open.id) ?? open); // with its text once it was reloaded
  return html`
    <${PageHead} title=${t('nav.deliveries')} note=${t('deliveries.note')} />
    <${Filters}>
      <${Filter} label=${t('field.state')} value=${list.state.status} onChange=${(status) => list.set({ status })}
        options=${optionsOf(STATES, (state) => term('delivery_status', state))} />
      <${Filter} label=${t('deliveries.channel')} value=${list.state.channel} onChange=${(channel) => list.set({ channel })}
        options=${optionsOf(['email', 'sms'], (channel) => term('channel', channel))} />
    <//>
    <${RecordList} list=${list} title=${t('nav.deliveries')} columns=${columnsOf(setOpen)}
      empty=${html`<${Empty} icon="deliveries" title=${t('deliveries.none')}
        action=${may('users', 'read') && html`<a class="button quiet" href="/admin/users">${t('nav.users')}</a>`}>
        ${t('deliveries.none_text')}<//>`} />
    ${row && html`<${DeliveryDialog} row=${row} close=${close} done=${done} reload=${list.reload} />`}`;
}
