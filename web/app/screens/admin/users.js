import { html } from '../../lib.js';
import { roleName } from '../../access.js';
import { LANGUAGES, t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { loginOf, nameOf, usePeople } from '../../people.js';
import { Avatar, Badge, Pager, Table, When } from '../../ui/data.js';
import { Empty, Loaded } from '../../ui/feedback.js';
import { Filter, Filters } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

const columns = () => [
  { key: 'name', label: t('admin.user'), cell: (row) => html`<span class="with-avatar"><${Avatar} name=${nameOf(row.id)} size="s" /><span class="two-lines"><span>${nameOf(row.id)}</span>${loginOf(row.id) !== nameOf(row.id) && html`<span class="mail">${loginOf(row.id)}</span>`}</span></span>` },
  { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${Badge} group="user_status" value=${row.status} />` },
  { key: 'roles', label: t('field.roles'), cell: (row) => html`<span class="row">${row.roles.map((role) => html`<${Badge} key=${role} value=${roleName(role)} tone="none" />`)}</span>` },
  { key: 'language', minor: true, label: t('language'), cell: (row) => LANGUAGES[row.language] ?? row.language },
  { key: 'login', label: t('field.last_login_at'), num: true, cell: (row) => html`<${When} at=${row.last_login_at} />` },
];

/** All users. */
export default function Users() {
  usePeople();
  const list = useList('/v1/users', { filters: ['status'], sort: '-created_at' });
  return html`
    <${PageHead} title=${t('nav.users')} note=${t('admin.users_note')} />
    <${Filters}><${Filter} label=${t('field.state')} value=${list.state.status} options=${['active', 'pending', 'disabled'].map((one) => [one, term('user_status', one)])} onChange=${(status) => list.set({ status })} /><//>
    <section class="card flush" aria-label=${t('nav.users')}>
      <${Loaded} load=${list} lines=${8}>${(page) => (page.data.length
        ? html`<${Table} caption=${t('nav.users')} columns=${columns()} rows=${page.data} sort=${list.state.sort} onSort=${(sort) => list.set({ sort })} link=${(row) => `/admin/users/${row.id}`} /><${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
        : html`<${Empty} icon="users" title=${t('list.no_match')} />`)}<//>
    </section>`;
}
