import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, roleName } from '../../access.js';
import { t } from '../../i18n.js';
import { useList } from '../../list.js';
import { go } from '../../router.js';
import { Badge, When } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';

function AccountDialog({ close }) {
  const form = useForm({ name: '', description: '' }, async (values) => {
    const { id } = await api.post('/v1/service-accounts', values);
    close();
    go(`/admin/services/${id}`);
  });
  return html`<${Dialog} title=${t('services.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} hint=${t('services.name_hint')} autocomplete="off" />
    <${Field} form=${form} name="description" rows=${3} optional label=${t('services.description')} />
    <${Actions} form=${form} label=${t('services.create')} cancel=${close} />
  <//><//>`;
}

const columns = () => [
  { key: 'name', label: t('field.name'), cell: (row) => row.name },
  { key: 'status', label: t('field.state'), cell: (row) => html`<${Badge} group="user_status" value=${row.status} />` },
  { key: 'roles', label: t('field.roles'), cell: (row) => row.roles.map(roleName).join(', ') },
  { key: 'description', minor: true, label: t('services.description'), cell: (row) => row.description },
  { key: 'created', label: t('field.created_at'), sort: 'created_at', cell: (row) => html`<${When} at=${row.created_at} exact />` },
];

/** The service accounts. */
export default function Services() {
  const [adding, setAdding] = useState(false);
  const list = useList('/v1/service-accounts', { sort: '-created_at' });
  const create = may('service_accounts', 'create') && html`<button onClick=${() => setAdding(true)}>
    <${Icon} name="plus" size=${16} />${t('services.new')}
  </button>`;
  return html`
    <${PageHead} title=${t('nav.services')} note=${t('services.note')}>
      ${create}
    <//>
    <${RecordList} list=${list} title=${t('nav.services')} columns=${columns()} link=${(row) => `/admin/services/${row.id}`}
      empty=${html`<${Empty} icon="key" title=${t('services.none')} action=${create}>${t('services.none_text')}<//>`} />
    ${adding && html`<${AccountDialog} close=${() => setAdding(false)} />`}`;
}
