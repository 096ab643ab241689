import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { t } from '../../i18n.js';
import { useList } from '../../list.js';
import { go } from '../../router.js';
import { loadStyle } from '../../style.js';
import { When } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty } from '../../ui/feedback.js';
import { useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';
import { SecretCreated, State, WebhookForm, valuesOf } from './webhook_form.js';

await loadStyle('admin');

function NewWebhook({ close }) {
  const [made, setMade] = useState(null);
  const blank = { url: '', description: '', account_id: '', types: '', include_record: false };
  const form = useForm(blank, async (values) => setMade(await api.post('/v1/webhooks', valuesOf(values))));
  if (made) return html`<${SecretCreated} key="created" secret=${made.secret} close=${() => go(`/admin/webhooks/${made.id}`)} />`;
  return html`<${Dialog} key="new" title=${t('webhooks.new')} close=${close}>
    <${WebhookForm} form=${form} label=${t('webhooks.create')} cancel=${close} choose />
  <//>`;
}

const columns = () => [
  { key: 'url', label: t('webhooks.url'), cell: (row) => row.url },
  { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${State} webhook=${row} />` },
  { key: 'types', minor: true, label: t('webhooks.types'), cell: (row) => row.types.join(', ') || t('webhooks.all_types') },
  { key: 'description', minor: true, label: t('webhooks.description'), cell: (row) => row.description },
  { key: 'delivered', label: t('webhooks.delivered_at'), cell: (row) => html`<${When} at=${row.delivered_at} />` },
];

/** The webhooks. */
export default function Webhooks() {
  const [adding, setAdding] = useState(false);
  const list = useList('/v1/webhooks', { sort: '-created_at' });
  const create = may('webhooks', 'create') && html`<button onClick=${() => setAdding(true)}>
    <${Icon} name="plus" size=${16} />${t('webhooks.new')}
  </button>`;
  return html`
    <${PageHead} title=${t('nav.webhooks')} note=${t('webhooks.note')}>
      ${create}
    <//>
    <${RecordList} list=${list} title=${t('nav.webhooks')} columns=${columns()} link=${(row) => `/admin/webhooks/${row.id}`}
      empty=${html`<${Empty} icon="deliveries" title=${t('webhooks.none')} action=${create}>${t('webhooks.none_text')}<//>`} />
    ${adding && html`<${NewWebhook} close=${() => setAdding(false)} />`}`;
}
