import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, roleName, roleText, useCaller } from '../../access.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { go } from '../../router.js';
import { Badge, Table } from '../../ui/data.js';
import { Dialog } from '../../ui/dialog.js';
import { Loaded } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm, useHeld } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { Why } from './why.js';

const valuesOf = (role) => ({ name: role?.name ?? '', description: role?.description ?? '' });

/** Makes a role, or renames one. */
export function RoleDialog({ role, etag, close, done }) {
  const held = useHeld(`/v1/rbac/roles/${role?.id}`, role, etag);
  const form = useForm(valuesOf(role), async (body) => done(await (role ? api.put(`/v1/rbac/roles/${role.id}`, body, held.match) : api.post('/v1/rbac/roles', body))),
    role && (async () => valuesOf(await held.read())));
  return html`<${Dialog} title=${role ? t('roles.edit') : t('roles.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} autocomplete="off" />
    <${Field} form=${form} name="description" label=${t('roles.description')} rows=${2} optional />
    <${Actions} form=${form} label=${role ? t('do.save') : t('roles.create')} cancel=${close} />
  <//><//>`;
}

/** All roles, and the caller's own rights explained. */
export default function Roles() {
  const { me } = useCaller();
  const [adding, setAdding] = useState(false);
  const load = useLoad(() => api.get('/v1/rbac/roles', { limit: 100, sort: 'name' }));
  const columns = [
    { key: 'name', label: t('field.name'), cell: (row) => roleName(row.name) },
    { key: 'description', label: t('roles.description'), cell: (row) => roleText(row) },
    { key: 'kind', label: t('roles.kind'), cell: (row) => (row.built_in ? html`<${Badge} value=${t('roles.built_in')} tone="none" />` : html`<${Badge} value=${t('roles.own')} tone="info" />`) },
  ];
  return html`
    <${PageHead} title=${t('nav.roles')} note=${t('roles.note')}>${may('roles', 'create') && html`<button onClick=${() => setAdding(true)}><${Icon} name="plus" size=${16} />${t('roles.new')}</button>`}<//>
    <div class="grid-main"><section class="card flush" aria-label=${t('nav.roles')}><${Loaded} load=${load}>${({ data }) => html`<${Table} caption=${t('nav.roles')} columns=${columns} rows=${data} link=${(row) => `/admin/roles/${row.id}`} />`}<//></section>
    <${Why} userId=${me.id} /></div>
    ${adding && html`<${RoleDialog} close=${() => setAdding(false)} done=${(made) => go(`/admin/roles/${made.id}`)} />`}`;
}
