import { html, useEffect, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, roleName } from '../../access.js';
import { LANGUAGES, t, term } from '../../i18n.js';
import { byWords, useList } from '../../list.js';
import { useLoad } from '../../load.js';
import { learnUsers, nameOf, usePeople } from '../../people.js';
import { route, setQuery } from '../../router.js';
import { useStore } from '../../store.js';
import { Avatar, Badge, When } from '../../ui/display.js';
import { toast } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf, Search } from '../../ui/filters.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { RecordList } from '../../ui/record_list.js';
import { Invitations, InviteDialog, useInvitations } from './invitations.js';

const Name = ({ user }) => html`<span class="with-avatar">
  <${Avatar} name=${nameOf(user.id)} size="s" /><${Person} id=${user.id} signIn />
</span>`;

const Roles = ({ user }) => html`<span class="row names">
  ${user.roles.map((role) => html`<${Badge} key=${role} value=${roleName(role)} tone="none" />`)}
</span>`;

const columns = () => [
  { key: 'name', label: t('admin.user'), sort: 'display_name', cell: (row) => html`<${Name} user=${row} />` },
  { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${Badge} group="user_status" value=${row.status} />` },
  { key: 'roles', label: t('field.roles'), cell: (row) => html`<${Roles} user=${row} />` },
  { key: 'language', minor: true, label: t('language'), cell: (row) => LANGUAGES[row.language] ?? row.language },
  { key: 'login', label: t('field.last_login_at'), num: true, cell: (row) => html`<${When} at=${row.last_login_at} />` },
];

/** The filter by role; its value is the id. */
function RoleFilter({ value, onChange }) {
  const { data } = useLoad(() => api.get('/v1/rbac/roles', { limit: 100, sort: 'name' }).catch(() => ({ data: [] })));
  return html`<${Filter} label=${t('field.roles')} value=${value} onChange=${onChange}
    options=${(data?.data ?? []).map((role) => [role.id, roleName(role.name)])} />`;
}

/** All users, and the invitations of people who are none yet. */
export default function Users() {
  usePeople();
  const role = useStore(route).query.get('role') ?? '';
  const [inviting, setInviting] = useState(false);
  const [offset, setOffset] = useState(0);
  const mayInvite = may('users', 'create');
  const invitations = useInvitations(offset, mayInvite);
  const list = useList('/v1/users', { filters: ['status'], sort: '-created_at', fixed: { role }, search: byWords });
  useEffect(() => learnUsers(list.data?.data ?? []), [list.data]);
  const statuses = optionsOf(['active', 'pending', 'disabled'], (status) => term('user_status', status));
  const clear = () => setQuery({ q: '', status: '', role: '', offset: '' });
  const shown = { ...list, filtered: list.filtered || role !== '', clear };
  const invited = (made) => {
    setInviting(false);
    invitations.reload();
    toast(t('invite.sent', { to: made.email }));
  };
  return html`
    <${PageHead} title=${t('nav.users')} note=${t('admin.users_note')}>
      ${mayInvite && html`<button onClick=${() => setInviting(true)}><${Icon} name="plus" size=${16} />${t('invite.new')}</button>`}
    <//>
    <${Invitations} load=${invitations} offset=${offset} move=${setOffset} />
    <${Filters}>
      <${Search} label=${t('invite.search_users')} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${RoleFilter} value=${role} onChange=${(id) => list.set({ role: id })} />
      <${Filter} label=${t('field.state')} value=${list.state.status} options=${statuses} onChange=${(status) => list.set({ status })} />
    <//>
    <${RecordList} list=${shown}
      title=${t('nav.users')} columns=${columns()} link=${(row) => `/admin/users/${row.id}`} />
    ${inviting && html`<${InviteDialog} close=${() => setInviting(false)} done=${invited} />`}`;
}
