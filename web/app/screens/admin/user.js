import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { myId, roleName, roleText } from '../../access.js';
import { dateTime } from '../../format.js';
import { LANGUAGES, t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { loginOf, nameOf, usePeople } from '../../people.js';
import { Avatar, Badge, Copy, Facts } from '../../ui/data.js';
import { confirm } from '../../ui/dialog.js';
import { Loaded, toast, useAction } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';
import { Credentials } from '../credentials.js';
import { Sessions } from '../sessions.js';
import { Why } from './why.js';

function Roles({ user, reload }) {
  const all = useLoad(() => api.get('/v1/rbac/roles', { limit: 100 }));
  const [chosen, setChosen] = useState(() => new Set(user.roles ?? []));
  const own = user.id === myId();
  const save = useAction(async () => {
    await api.put(`/v1/users/${user.id}/roles`, { roles: [...chosen] });
    reload();
    toast(t('saved'));
  });
  const toggle = (name) => setChosen((was) => {
    const next = new Set(was);
    if (!next.delete(name)) next.add(name);
    return next;
  });
  return html`<${Card} title=${t('field.roles')}>
    <${Loaded} load=${all} lines=${3}>${({ data }) => html`<fieldset disabled=${own}><legend class="sr">${t('field.roles')}</legend>
      ${data.map((role) => html`<div key=${role.id} class="field check"><label><input type="checkbox" checked=${chosen.has(role.name)} onChange=${() => toggle(role.name)} /><span>${roleName(role.name)}${roleText(role) && html`<br /><span class="fine">${roleText(role)}</span>`}</span></label></div>`)}
    </fieldset>
    ${own ? html`<p class="fine">${t('admin.own_roles')}</p>` : html`<div class="actions"><button disabled=${save.busy} onClick=${save.run}>${t('do.save')}</button></div>`}`}<//>
  <//>`;
}

/** One user, for administrators: state, roles, credentials, devices, and why he may do what. */
export default function User({ id }) {
  usePeople();
  const load = useLoad(() => api.get(`/v1/users/${id}`), [id]);
  const status = useAction(async (next) => {
    if (next === 'disabled' && !(await confirm({ title: t('admin.disable'), text: t('admin.disable_text', { name: nameOf(id) }), action: t('admin.disable') }))) return;
    await api.patch(`/v1/users/${id}`, { status: next });
    load.reload();
    toast(t('saved'));
  });
  return html`<${Loaded} load=${load} lines=${8}>${(user) => html`
    <${PageHead} title=${nameOf(id)} back=${['/admin/users', t('nav.users')]} picture=${html`<${Avatar} name=${nameOf(id)} size="xl" />`} note=${html`<span class="row"><${Badge} group="user_status" value=${user.status} />${loginOf(id) !== nameOf(id) && html`<span>${loginOf(id)}</span>`}</span>`}>
      ${user.status === 'active' ? user.id !== myId() && html`<button class="quiet danger" disabled=${status.busy} onClick=${() => status.run('disabled')}>${t('admin.disable')}</button>` : html`<button disabled=${status.busy} onClick=${() => status.run('active')}>${t('admin.activate')}</button>`}
    <//>
    <div class="grid-2">
      <div class="stack">
        <${Card} title=${t('profile.account')}><${Facts} list rows=${[[t('language'), LANGUAGES[user.language]], [t('field.created_at'), dateTime(user.created_at)], [t('field.last_login_at'), dateTime(user.last_login_at)], [t('field.id'), html`<span class="code">${user.id}</span><${Copy} text=${user.id} label=${t('copy.id')} />`]]} /><//>
        <${Roles} key=${JSON.stringify(user.roles)} user=${user} reload=${load.reload} />
        <${Why} userId=${id} />
      </div>
      <div class="stack"><${Credentials} userId=${id} /><${Sessions} userId=${id} /></div>
    </div>`}<//>`;
}

