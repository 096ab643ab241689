import { html, useId, useLayoutEffect, useState } from '../../lib.js';
import { api } from '../../api.js';
import { EVERYONE, may, roleName, roleText } from '../../access.js';
import { isDate } from '../../dates.js';
import { dateTime } from '../../format.js';
import { LANGUAGES, t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { learnUsers, myId, nameOf, usePeople } from '../../people.js';
import { DateInput } from '../../ui/date_field.js';
import { Avatar, Badge, Facts, RecordId } from '../../ui/display.js';
import { confirm } from '../../ui/dialog.js';
import { Loaded, toast, useAction } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';
import { Person, personText } from '../../ui/person.js';
import { localInput, timestamp, Validity } from '../../ui/validity.js';
import { WhoSees } from '../../ui/who_sees.js';
import { Credentials } from '../credentials.js';
import { DisplayName } from '../display_name.js';
import { Factors } from '../factors.js';
import { Identities } from '../identities.js';
import { UserPrivacy } from '../privacy.js';
import { Sessions } from '../sessions.js';
import { ExplainAccess } from './explain_access.js';

function RoleChoice({ role, checked, toggle, term, end, setEnd }) {
  const text = roleText(role);
  const id = useId();
  return html`<div class="field check"><label>
      <input type="checkbox" checked=${checked} onChange=${toggle} />
      <span>${roleName(role.name)}${text && html`<br /><span class="fine">${text}</span>`}</span>
    </label>
    <${Validity} term=${term} />
    ${checked && html`<div class="field"><label for=${id}>${t('grants.expires')}</label>
      <${DateInput} id=${id} exact raw value=${end} onChange=${setEnd} /></div>`}
  </div>`;
}

/** The terms of the chosen roles: the present ones with the ends that were changed; undefined if none was. */
function termsOf(user, chosen, ends) {
  if (ends.size === 0) return undefined;
  return [...chosen].map((role) => {
    const term = user.role_terms?.find((one) => one.role === role);
    return { role, starts_at: term?.starts_at, expires_at: ends.has(role) ? timestamp(ends.get(role)) : term?.expires_at };
  });
}

/** Returns the chosen roles: the present ones with the user's changes, which stay when the record is loaded again. */
function withChanges(roles, changes) {
  const chosen = new Set(roles);
  for (const [name, on] of changes) {
    if (on) chosen.add(name);
    else chosen.delete(name);
  }
  return chosen;
}

function Roles({ user, reload }) {
  const all = useLoad(() => api.get('/v1/rbac/roles', { limit: 100 }));
  const [changes, setChanges] = useState(new Map()); // role → whether the user shall have it
  const [ends, setEnds] = useState(new Map()); // role → when it shall end, if the user has changed it
  const terms = new Map(user.role_terms?.map((term) => [term.role, term]));
  const held = [...new Set([...user.roles, ...terms.keys()])]; // with roles that begin later
  const chosen = withChanges(held, changes);
  const isSelf = user.id === myId();
  useLayoutEffect(() => setChanges((was) => new Map([...was].filter(([name, on]) => on !== held.includes(name)))), [user]);
  const wrongEnd = [...ends.values()].some((end) => end && !isDate(end, true));
  const save = useAction(async () => {
    await api.put(`/v1/users/${user.id}/roles`, { roles: [...chosen], terms: termsOf(user, chosen, ends) });
    setEnds(new Map());
    reload();
    toast(t('saved'));
  });
  const toggle = (name) => setChanges((was) => new Map(was).set(name, !withChanges(held, was).has(name)));
  return html`<${Card} title=${t('field.roles')}>
    <${Loaded} load=${all} lines=${3}>${({ data }) => html`
      <fieldset disabled=${isSelf}><legend class="sr">${t('field.roles')}</legend>
        ${data.filter((role) => role.id !== EVERYONE).map((role) => html`
          <${RoleChoice} key=${role.id} role=${role} checked=${chosen.has(role.name)} toggle=${() => toggle(role.name)}
            term=${terms.get(role.name)} end=${ends.get(role.name) ?? localInput(terms.get(role.name)?.expires_at)}
            setEnd=${(at) => setEnds((was) => new Map(was).set(role.name, at))} />`)}
      </fieldset>
      ${isSelf
        ? html`<p class="fine">${t('admin.own_roles')}</p>`
        : html`<div class="actions"><button disabled=${save.busy || wrongEnd} onClick=${save.run}>${t('do.save')}</button></div>`}`}<//>
  <//>`;
}

function Head({ user, reload }) {
  const setStatus = useAction(async (status) => {
    if (status === 'disabled') {
      const text = t('admin.disable_text', { name: personText(user.id) });
      if (!(await confirm({ title: t('admin.disable'), text, action: t('admin.disable') }))) return;
    }
    await api.patch(`/v1/users/${user.id}`, { status });
    reload();
    toast(t('saved'));
  });
  const isActive = user.status === 'active';
  const disable = html`<button class="quiet danger" disabled=${setStatus.busy} onClick=${() => setStatus.run('disabled')}>
    ${t('admin.disable')}
  </button>`;
  const activate = html`<button disabled=${setStatus.busy} onClick=${() => setStatus.run('active')}>${t('admin.activate')}</button>`;
  return html`<${PageHead} title=${html`<${Person} id=${user.id} signIn />`} plainTitle=${nameOf(user.id)}
    back=${['/admin/users', t('nav.users')]} picture=${html`<${Avatar} name=${nameOf(user.id)} size="xl" />`}
    note=${html`<${Badge} group="user_status" value=${user.status} />`}>
    <${WhoSees} type="users" id=${user.id} />
    ${isActive ? user.id !== myId() && disable : activate}
  <//>`;
}

/** One user, for administrators: state, name, roles, second factors, credentials, sessions, and permissions explained. */
export default function User({ id }) {
  usePeople();
  const load = useLoad(async () => {
    const user = await api.get(`/v1/users/${id}`);
    learnUsers([user]);
    return user;
  }, [id]);
  const facts = (user) => [
    [t('language'), LANGUAGES[user.language]],
    [t('field.created_at'), dateTime(user.created_at)],
    [t('field.last_login_at'), dateTime(user.last_login_at)],
    [t('field.id'), html`<${RecordId} id=${user.id} />`],
  ];
  return html`<${Loaded} load=${load} lines=${8}>${(user) => html`
    <${Head} user=${user} reload=${load.reload} />
    <div class="grid-2">
      <div class="stack">
        <${Card} title=${t('profile.account')}><${Facts} list rows=${facts(user)} /><//>
        <${DisplayName} key=${user.display_name} user=${user} changed=${load.reload} />
        <${Roles} user=${user} reload=${load.reload} />
      </div>
      <div class="stack">
        <${ExplainAccess} userId=${id} />
        ${user.kind === 'service'
          ? html`<a href=${`/admin/services/${id}`}>${t('nav.services')}</a>`
          : html`<${Factors} userId=${id} /><${Credentials} userId=${id} /><${Identities} userId=${id} /><${Sessions} userId=${id} />
            <${UserPrivacy} userId=${id} name=${personText(id)} erase=${id !== myId() && may('users', 'delete')} done=${load.reload} />`}
      </div>
    </div>`}<//>`;
}
