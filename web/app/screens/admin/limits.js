import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { number } from '../../format.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Table } from '../../ui/data.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { EndpointName, listEndpoints } from './endpoints.js';

function LimitDialog({ rule, close, done }) {
  const endpoints = useLoad(listEndpoints);
  const form = useForm({ endpoint: rule?.endpoint ?? '', per_minute: rule?.per_minute ?? 60 }, async (values) => done(await api.put('/v1/rate-limits', { endpoint: values.endpoint, per_minute: Number(values.per_minute) })));
  return html`<${Dialog} title=${t('limits.set')} close=${close}><${Form} form=${form}>
    ${rule ? html`<p><${EndpointName} name=${rule.endpoint} /></p>` : html`<${Field} form=${form} name="endpoint" label=${t('grants.endpoint')} options=${[['', t('grants.choose')], ...(endpoints.data ?? []).map((row) => [row.endpoint, row.endpoint])]} />`}
    <${Field} form=${form} name="per_minute" type="number" min="1" label=${t('limits.per_minute')} />
    <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
  <//><//>`;
}

/** The stored rate limits; endpoints without one have the default. */
export default function Limits() {
  const [dialog, setDialog] = useState(null);
  const load = useLoad(async () => (await api.get('/v1/rate-limits', { limit: 100, sort: 'endpoint' })).data);
  const done = () => { setDialog(null); load.reload(); toast(t('saved')); };
  const remove = (rule) => api.put('/v1/rate-limits', { endpoint: rule.endpoint, per_minute: null }).then(done, toastError);
  const columns = [
    { key: 'endpoint', label: t('grants.endpoint'), cell: (row) => html`<${EndpointName} name=${row.endpoint} />` },
    { key: 'rate', label: t('limits.per_minute'), num: true, cell: (row) => number(row.per_minute) },
    may('rate_limits', 'update') && { key: 'do', label: '', cell: (row) => html`<span class="row end"><button class="quiet small" onClick=${() => setDialog(row)}>${t('do.edit')}</button><button class="bare" aria-label=${t('limits.remove', { endpoint: row.endpoint })} onClick=${() => remove(row)}><${Icon} name="trash" size=${16} /></button></span>` },
  ].filter(Boolean);
  const add = may('rate_limits', 'update') && html`<button onClick=${() => setDialog('new')}><${Icon} name="plus" size=${16} />${t('limits.set')}</button>`;
  return html`
    <${PageHead} title=${t('nav.limits')} note=${t('limits.note')}>${add}<//>
    <section class="card flush" aria-label=${t('nav.limits')}><${Loaded} load=${load}>${(rows) => (rows.length ? html`<${Table} caption=${t('nav.limits')} columns=${columns} rows=${rows.map((row) => ({ ...row, id: row.endpoint }))} />` : html`<${Empty} icon="limits" title=${t('limits.none')}>${t('limits.none_text')}<//>`)}<//></section>
    ${dialog && html`<${LimitDialog} rule=${dialog === 'new' ? null : dialog} close=${() => setDialog(null)} done=${done} />`}`;
}
