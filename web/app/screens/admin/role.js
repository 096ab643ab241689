import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, PERMISSIONS, roleName, roleText, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { go } from '../../router.js';
import { Badge } from '../../ui/data.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { Card, PageHead } from '../../ui/page.js';
import { EndpointName, listEndpoints } from './endpoints.js';
import { RoleDialog } from './roles.js';

async function grantsOf(roleId) {
  const rows = [];
  for (;;) {
    const page = await api.get('/v1/rbac/grants', { limit: 100, offset: rows.length, 'search.role_id': roleId });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

function GrantDialog({ role, close, done }) {
  const endpoints = useLoad(listEndpoints);
  const form = useForm({ kind: 'type', rec_type: 'customers', rec_id: '', endpoint: '', ...Object.fromEntries(PERMISSIONS.map((one) => [`may_${one}`, one === 'read'])) }, async (values) => {
    const body = { role_id: role.id };
    if (values.kind === 'endpoint') body.endpoint = values.endpoint;
    else {
      Object.assign(body, { rec_type: values.rec_type, permissions: PERMISSIONS.filter((one) => values[`may_${one}`]) });
      if (values.rec_id.trim()) body.rec_id = values.rec_id.trim();
    }
    done(await api.post('/v1/rbac/grants', body));
  });
  const names = (endpoints.data ?? []).map((row) => row.endpoint);
  return html`<${Dialog} title=${t('grants.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="kind" label=${t('grants.kind')} options=${[['type', t('grants.on_type')], ['endpoint', t('grants.on_endpoint')]]} />
    ${form.values.kind === 'endpoint'
      ? html`<${Field} form=${form} name="endpoint" label=${t('grants.endpoint')} options=${[['', t('grants.choose')], ...names.map((name) => [name, name])]} />`
      : html`<${Field} form=${form} name="rec_type" label=${t('why.type')} options=${TYPES.map((one) => [one, term('rec_type', one)])} />
          <fieldset><legend>${t('grants.permissions')}</legend><div class="fields">${PERMISSIONS.map((one) => html`<${Field} key=${one} form=${form} name=${`may_${one}`} type="checkbox" label=${term('permission', one)} />`)}</div>
            ${form.errors.permissions && html`<small class="field-error">${form.errors.permissions}</small>`}</fieldset>
          <${Field} form=${form} name="rec_id" label=${t('why.record')} optional spellcheck="false" />`}
    <${Actions} form=${form} label=${t('grants.create')} cancel=${close} />
  <//><//>`;
}

function Grants({ title, rows, text, remove }) {
  return html`<${Card} title=${title}>${rows.length
    ? html`<ul class="items">${rows.map((grant) => html`<li key=${grant.id}><div class="grow">${text(grant)}</div>${remove && html`<button class="bare" aria-label=${t('grants.remove_one', { what: grant.endpoint || term('rec_type', grant.rec_type) })} onClick=${() => remove(grant)}><${Icon} name="trash" size=${16} /></button>`}</li>`)}</ul>`
    : html`<${Empty} icon="roles" title=${t('grants.none')} />`}<//>`;
}

/** One role and everything that is granted to it. */
export default function Role({ id }) {
  const [dialog, setDialog] = useState('');
  const load = useLoad(() => api.tagged(`/v1/rbac/roles/${id}`), [id]);
  const grants = useLoad(() => grantsOf(id), [id]);
  const close = () => setDialog('');
  const saved = () => { close(); load.reload(); grants.reload(); toast(t('saved')); };
  async function remove(grant) {
    if (await confirm({ title: t('grants.remove'), text: t('grants.remove_text'), action: t('grants.remove') })) api.delete(`/v1/rbac/grants/${grant.id}`).then(saved, toastError);
  }
  async function removeRole() {
    if (await confirm({ title: t('roles.remove'), text: t('roles.remove_text', { name: load.data.record.name }), action: t('roles.remove') })) api.delete(`/v1/rbac/roles/${id}`).then(() => go('/admin/roles'), toastError);
  }
  const typeText = (grant) => html`<strong>${term('rec_type', grant.rec_type)}</strong>${grant.rec_id && html` <span class="code">${grant.rec_id}</span>`}<div class="row">${grant.permissions.map((one) => html`<${Badge} key=${one} group="permission" value=${one} tone="none" />`)}</div>`;
  return html`<${Loaded} load=${load} lines=${8}>${({ record: role, etag }) => html`
    <${PageHead} title=${roleName(role.name)} back=${['/admin/roles', t('nav.roles')]} note=${roleText(role)}>
      ${!role.built_in && may('roles', 'delete') && html`<button class="quiet danger" onClick=${removeRole}>${t('roles.remove')}</button>`}
      ${!role.built_in && may('roles', 'update') && html`<button class="quiet" onClick=${() => setDialog('edit')}>${t('do.edit')}</button>`}
      ${may('grants', 'create') && html`<button onClick=${() => setDialog('grant')}><${Icon} name="plus" size=${16} />${t('grants.new')}</button>`}
    <//>
    <${Loaded} load=${grants}>${(rows) => html`<div class="grid-2">
      <${Grants} title=${t('grants.types')} rows=${rows.filter((grant) => !grant.endpoint)} text=${typeText} remove=${may('grants', 'delete') && remove} />
      <${Grants} title=${t('grants.endpoints')} rows=${rows.filter((grant) => grant.endpoint)} text=${(grant) => html`<${EndpointName} name=${grant.endpoint} />`} remove=${may('grants', 'delete') && remove} />
    </div>`}<//>
    ${dialog === 'grant' && html`<${GrantDialog} role=${role} close=${close} done=${saved} />`}
    ${dialog === 'edit' && html`<${RoleDialog} role=${role} etag=${etag} close=${close} done=${saved} />`}`}<//>`;
}
