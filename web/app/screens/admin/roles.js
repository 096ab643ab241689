import { html, useState } from '../../lib.js';
import { may, roleName, roleText, useCaller } from '../../access.js';
import { t } from '../../i18n.js';
import { useList } from '../../list.js';
import { go } from '../../router.js';
import { Badge } from '../../ui/display.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';
import { ExplainAccess } from './explain_access.js';
import { RoleDialog } from './role_form.js';

function Kind({ role }) {
  return role.built_in
    ? html`<${Badge} value=${t('roles.built_in')} tone="none" />`
    : html`<${Badge} value=${t('roles.own')} tone="info" />`;
}

const columns = () => [
  { key: 'name', label: t('field.name'), sort: 'name', cell: (row) => roleName(row.name) },
  { key: 'description', label: t('roles.description'), cell: roleText },
  { key: 'kind', label: t('roles.kind'), cell: (row) => html`<${Kind} role=${row} />` },
];

/** All roles, and the caller's own permissions explained. */
export default function Roles() {
  const { me } = useCaller();
  const [adding, setAdding] = useState(false);
  const list = useList('/v1/rbac/roles', { sort: 'name' });
  return html`
    <${PageHead} title=${t('nav.roles')} note=${t('roles.note')}>
      ${may('roles', 'create') && html`<button onClick=${() => setAdding(true)}>
        <${Icon} name="plus" size=${16} />${t('roles.new')}
      </button>`}
    <//>
    <div class="grid-main">
      <${RecordList} list=${list} title=${t('nav.roles')} columns=${columns()} link=${(row) => `/admin/roles/${row.id}`} />
      <${ExplainAccess} userId=${me.id} />
    </div>
    ${adding && html`<${RoleDialog} close=${() => setAdding(false)} done=${(made) => go(`/admin/roles/${made.id}`)} />`}`;
}
