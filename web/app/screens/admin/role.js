import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { EVERYONE, may, roleName, roleText } from '../../access.js';
import { number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { usePeople } from '../../people.js';
import { go } from '../../router.js';
import { loadStyle } from '../../style.js';
import { Badge } from '../../ui/display.js';
import { confirm } from '../../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../../ui/feedback.js';
import { Icon } from '../../ui/icon.js';
import { Card, PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { Validity } from '../../ui/validity.js';
import { WhoSees } from '../../ui/who_sees.js';
import { loadAll } from './endpoint_list.js';
import { Matrix } from './matrix.js';
import { GrantDialog, RoleDialog } from './role_form.js';

await loadStyle('admin');

/** The object of a grant on one record, with the permissions. */
function GrantText({ grant }) {
  if (grant.endpoint) return html`<span class="code">${grant.endpoint}</span><br /><${Validity} term=${grant} />`;
  return html`<strong>${term('rec_type', grant.rec_type)}</strong>${grant.rec_id && html` <span class="code">${grant.rec_id}</span>`}
    <div class="row">${grant.permissions.map((one) => html`<${Badge} key=${one} group="permission" value=${one} tone="none" />`)}</div>
    <${Validity} term=${grant} />`;
}

/** Reports whether the matrix does not show all of a grant: it is on one record, or begins or ends by itself. */
const besideMatrix = (grant) => grant.rec_id || grant.starts_at || grant.expires_at;

function Grant({ grant, remove }) {
  const what = grant.endpoint ?? term('rec_type', grant.rec_type);
  return html`<li>
    <div class="grow"><${GrantText} grant=${grant} /></div>
    ${remove && html`<button class="bare" aria-label=${t('grants.remove_one', { what })} onClick=${() => remove(grant)}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

const Grants = ({ title, rows, remove }) => html`<${Card} title=${title}>${rows.length
  ? html`<ul class="items">${rows.map((grant) => html`<${Grant} key=${grant.id} grant=${grant} remove=${remove} />`)}</ul>`
  : html`<${Empty} icon="roles" title=${t('grants.none')}>${t('grants.none_text')}<//>`}<//>`;

function Head({ role, edit, addGrant }) {
  async function removeRole() {
    const text = t('roles.remove_text', { name: role.name });
    if (!(await confirm({ title: t('roles.remove'), text, action: t('roles.remove') }))) return;
    api.delete(`/v1/rbac/roles/${role.id}`).then(() => go('/admin/roles'), toastError);
  }
  return html`<${PageHead} title=${roleName(role.name)} back=${['/admin/roles', t('nav.roles')]} note=${roleText(role)}>
    ${!role.built_in && may('roles', 'delete') && html`<button class="quiet danger" onClick=${removeRole}>${t('roles.remove')}</button>`}
    ${!role.built_in && may('roles', 'update') && html`<button class="quiet" onClick=${edit}>${t('do.edit')}</button>`}
    ${role.id !== EVERYONE && may('grants', 'create') && html`<button class="quiet" onClick=${addGrant}>
      <${Icon} name="plus" size=${16} />${t('matrix.new_on_record')}
    </button>`}
    <${WhoSees} type="roles" id=${role.id} />
  <//>`;
}

function Holders({ role }) {
  const load = useLoad(() => api.get('/v1/users', { role: role.id, limit: 5 }), [role.id]);
  const total = load.data && html`<span class="num">${number(load.data.total)}</span>`;
  return html`<${Card} title=${t('matrix.holders')} aside=${total}><${Loaded} load=${load} lines=${2}>${(users) => (users.total === 0
    ? html`<p class="fine">${t('matrix.no_holders')}</p>`
    : html`<ul class="items">${users.data.map((user) => html`<li key=${user.id}>
        <a class="grow" href=${`/admin/users/${user.id}`}><${Person} id=${user.id} signIn /></a></li>`)}</ul>
      ${users.has_more && html`<a href=${`/admin/users?role=${role.id}`}>${t('matrix.all_holders')}</a>`}`)}<//>
  <//>`;
}

/** One role: its permissions and endpoints as a matrix, its holders, and its grants on single records. */
export default function Role({ id }) {
  usePeople();
  const [dialog, setDialog] = useState('');
  const load = useLoad(() => api.withETag(`/v1/rbac/roles/${id}`), [id]);
  const grants = useLoad(() => loadAll('/v1/rbac/grants', { 'search.role_id': id }), [id]);
  const close = () => setDialog('');
  const saved = () => {
    close();
    load.reload();
    grants.reload();
    toast(t('saved'));
  };
  async function removeGrant(grant) {
    if (!(await confirm({ title: t('grants.remove'), text: t('grants.remove_text'), action: t('grants.remove') }))) return;
    api.delete(`/v1/rbac/grants/${grant.id}`).then(saved, toastError);
  }
  const remove = may('grants', 'delete') && removeGrant;
  return html`<${Loaded} load=${load} lines=${8}>${({ record: role, etag }) => html`
    <${Head} role=${role} edit=${() => setDialog('edit')} addGrant=${() => setDialog('grant')} />
    <${Matrix} role=${role} saved=${grants.reload} />
    <div class="grid-2">
      <${Holders} role=${role} />
      <${Loaded} load=${grants}>${(rows) => html`
        <${Grants} title=${t('matrix.on_records')} rows=${rows.filter(besideMatrix)} remove=${remove} />`}<//>
    </div>
    ${dialog === 'grant' && html`<${GrantDialog} role=${role} close=${close} done=${saved} />`}
    ${dialog === 'edit' && html`<${RoleDialog} role=${role} etag=${etag} close=${close} done=${saved} />`}`}<//>`;
}
