import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { dateTime } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { Badge, Facts, Pager, Table, When } from '../../ui/data.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, toast, useAction } from '../../ui/feedback.js';
import { Filter, Filters } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

const STATES = ['queued', 'sending', 'sent', 'retrying', 'dead'];

function Delivery({ row, close, done }) {
  const retry = useAction(async () => {
    await api.post(`/v1/notifications/deliveries/${row.id}/retry`);
    toast(t('deliveries.retried'));
    done();
  });
  return html`<${Dialog} title=${row.subject || term('channel', row.channel)} close=${close} wide>
    <${Facts} rows=${[[t('deliveries.to'), row.to], [t('deliveries.channel'), term('channel', row.channel)], [t('field.state'), html`<${Badge} group="delivery_status" value=${row.status} />`], [t('deliveries.attempts'), row.attempts],
      [t('field.created_at'), dateTime(row.created_at)], [t('deliveries.sent_at'), dateTime(row.sent_at)], row.status === 'retrying' && [t('deliveries.next'), dateTime(row.next_attempt_at)]]} />
    ${row.last_error && html`<div><h3>${t('deliveries.error')}</h3><pre tabindex="0">${row.last_error}</pre></div>`}
    ${row.text && html`<div><h3>${t('deliveries.text')}</h3><pre tabindex="0">${row.text}</pre></div>`}
    <div class="actions">${row.status === 'dead' || row.status === 'retrying' && html`<button disabled=${retry.busy} onClick=${retry.run}>${t('deliveries.retry')}</button>`}<button class="quiet" onClick=${close}>${t('do.close')}</button></div>
  <//>`;
}

/** What left the house by e-mail and SMS, and what could not. */
export default function Deliveries() {
  const [open, setOpen] = useState(null);
  const list = useList('/v1/notifications/deliveries', { filters: ['status', 'channel'], sort: '-created_at' });
  const columns = [
    { key: 'what', label: t('deliveries.message'), cell: (row) => html`<button class="link what" onClick=${() => setOpen(row)}>${row.subject || row.text?.slice(0, 60) || row.id}</button>` },
    { key: 'to', label: t('deliveries.to'), cell: (row) => row.to },
    { key: 'channel', wide: true, label: t('deliveries.channel'), cell: (row) => term('channel', row.channel) },
    { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${Badge} group="delivery_status" value=${row.status} />` },
    { key: 'attempts', wide: true, label: t('deliveries.attempts'), num: true, cell: (row) => row.attempts },
    { key: 'created', label: t('field.created_at'), sort: 'created_at', num: true, cell: (row) => html`<${When} at=${row.created_at} />` },
  ];
  return html`
    <${PageHead} title=${t('nav.deliveries')} note=${t('deliveries.note')} />
    <${Filters}>
      <${Filter} label=${t('field.state')} value=${list.state.status} options=${STATES.map((one) => [one, term('delivery_status', one)])} onChange=${(status) => list.set({ status })} />
      <${Filter} label=${t('deliveries.channel')} value=${list.state.channel} options=${['email', 'sms'].map((one) => [one, term('channel', one)])} onChange=${(channel) => list.set({ channel })} />
    <//>
    <section class="card flush" aria-label=${t('nav.deliveries')}><${Loaded} load=${list} lines=${8}>${(page) => (page.data.length
      ? html`<${Table} caption=${t('nav.deliveries')} columns=${columns} rows=${page.data} sort=${list.state.sort} onSort=${(sort) => list.set({ sort })} /><${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
      : html`<${Empty} icon="deliveries" title=${list.filtered ? t('list.no_match') : t('deliveries.none')} />`)}<//></section>
    ${open && html`<${Delivery} row=${open} close=${() => setOpen(null)} done=${() => { setOpen(null); list.reload(); }} />`}`;
}
