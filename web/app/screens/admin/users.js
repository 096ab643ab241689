import { html, useEffect } from '../../lib.js';
import { roleName } from '../../access.js';
import { LANGUAGES, t, term } from '../../i18n.js';
import { byWords, useList } from '../../list.js';
import { learnUsers, nameOf, usePeople } from '../../people.js';
import { Avatar, Badge, When } from '../../ui/display.js';
import { Filter, Filters, optionsOf, Search } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { RecordList } from '../../ui/record_list.js';

const Name = ({ user }) => html`<span class="with-avatar">
  <${Avatar} name=${nameOf(user.id)} size="s" /><${Person} id=${user.id} signIn />
</span>`;

const Roles = ({ user }) => html`<span class="row">
  ${user.roles.map((role) => html`<${Badge} key=${role} value=${roleName(role)} tone="none" />`)}
</span>`;

const columns = () => [
  { key: 'name', label: t('admin.user'), sort: 'display_name', cell: (row) => html`<${Name} user=${row} />` },
  { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${Badge} group="user_status" value=${row.status} />` },
  { key: 'roles', label: t('field.roles'), cell: (row) => html`<${Roles} user=${row} />` },
  { key: 'language', minor: true, label: t('language'), cell: (row) => LANGUAGES[row.language] ?? row.language },
  { key: 'login', label: t('field.last_login_at'), num: true, cell: (row) => html`<${When} at=${row.last_login_at} />` },
];

/** All users. */
export default function Users() {
  usePeople();
  const list = useList('/v1/users', { filters: ['status'], sort: '-created_at', search: byWords });
  useEffect(() => learnUsers(list.data?.data ?? []), [list.data]);
  const statuses = optionsOf(['active', 'pending', 'disabled'], (status) => term('user_status', status));
  return html`
    <${PageHead} title=${t('nav.users')} note=${t('admin.users_note')} />
    <${Filters}>
      <${Search} label=${t('admin.search_users')} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('field.state')} value=${list.state.status} options=${statuses} onChange=${(status) => list.set({ status })} />
    <//>
    <${RecordList} list=${list} title=${t('nav.users')} columns=${columns()} link=${(row) => `/admin/users/${row.id}`} />`;
}
