import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { number } from '../../format.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { ListTools } from '../../ui/list_tools.js';
import { PageHead } from '../../ui/page.js';
import { Table } from '../../ui/table.js';
import { EndpointName, listEndpoints } from './endpoint_list.js';

const DEFAULT_PER_MINUTE = 60;

function LimitDialog({ rule, close, done }) {
  const endpoints = useLoad(listEndpoints);
  const initial = { endpoint: rule?.endpoint ?? '', per_minute: rule?.per_minute ?? DEFAULT_PER_MINUTE };
  const form = useForm(initial, async ({ endpoint, per_minute: rate }) => {
    done(await api.put('/v1/rate-limits', { endpoint, per_minute: Number(rate) }));
  });
  const options = [['', t('grants.choose')], ...(endpoints.data ?? []).map((row) => [row.endpoint, row.endpoint])];
  return html`<${Dialog} title=${t('limits.set')} close=${close}><${Form} form=${form}>
    ${rule
      ? html`<p><${EndpointName} name=${rule.endpoint} /></p>`
      : html`<${Field} form=${form} name="endpoint" label=${t('grants.endpoint')} options=${options} />`}
    <${Field} form=${form} name="per_minute" type="number" min="1" label=${t('limits.per_minute')} />
    <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
  <//><//>`;
}

function RuleActions({ rule, edit, remove }) {
  return html`<span class="row end">
    <button class="quiet small" onClick=${edit}>${t('do.edit')}</button>
    <button class="bare" aria-label=${t('limits.remove', { endpoint: rule.endpoint })} onClick=${remove}>
      <${Icon} name="trash" size=${16} />
    </button>
  </span>`;
}

/** The rate limits that the bank has set; other endpoints have the default. */
export default function RateLimits() {
  const [dialog, setDialog] = useState(null); // 'new', or the limit to change
  const load = useLoad(async () => (await api.get('/v1/rate-limits', { limit: 100, sort: 'endpoint' })).data);
  const close = () => setDialog(null);
  const done = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  const remove = (rule) => api.put('/v1/rate-limits', { endpoint: rule.endpoint, per_minute: null }).then(done, toastError);
  const mayUpdate = may('rate_limits', 'update');
  const actions = (row) => html`<${RuleActions} rule=${row} edit=${() => setDialog(row)} remove=${() => remove(row)} />`;
  const columns = [
    { key: 'endpoint', label: t('grants.endpoint'), cell: (row) => html`<${EndpointName} name=${row.endpoint} />` },
    { key: 'rate', label: t('limits.per_minute'), num: true, cell: (row) => number(row.per_minute) },
    mayUpdate && { key: 'do', label: '', cell: actions },
  ].filter(Boolean);
  const withId = (rows) => rows.map((row) => ({ ...row, id: row.endpoint }));
  return html`
    <${PageHead} title=${t('nav.limits')} note=${t('limits.note')}>
      ${mayUpdate && html`<button onClick=${() => setDialog('new')}><${Icon} name="plus" size=${16} />${t('limits.set')}</button>`}
    <//>
    <section class="card flush" aria-label=${t('nav.limits')}>
      <${ListTools} list=${{ path: '/v1/rate-limits' }} />
      <${Loaded} load=${load}>${(rows) => (rows.length
        ? html`<${Table} caption=${t('nav.limits')} columns=${columns} rows=${withId(rows)} />`
        : html`<${Empty} icon="limits" title=${t('limits.none')}>${t('limits.none_text')}<//>`)}<//>
    </section>
    ${dialog && html`<${LimitDialog} rule=${dialog === 'new' ? null : dialog} close=${close} done=${done} />`}`;
}
