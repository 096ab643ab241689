import { html } from '../../lib.js';
import { api } from '../../api.js';
import { PERMISSIONS, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { Actions, Field, Form, useEditedRecord, useForm } from '../../ui/form.js';
import { listEndpoints } from './endpoint_list.js';

const valuesOf = (role) => ({ name: role?.name ?? '', description: role?.description ?? '' });

/** Creates a role or changes one. */
export function RoleDialog({ role, etag, close, done }) {
  const path = `/v1/rbac/roles/${role?.id}`;
  const edited = useEditedRecord(path, role, etag);
  const form = useForm(valuesOf(role), async (body) => {
    done(await (role ? api.put(path, body, edited.match) : api.post('/v1/rbac/roles', body)));
  }, role && (async () => valuesOf(await edited.reload())));
  return html`<${Dialog} title=${role ? t('roles.edit') : t('roles.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} autocomplete="off" />
    <${Field} form=${form} name="description" label=${t('roles.description')} rows=${2} optional />
    <${Actions} form=${form} label=${role ? t('do.save') : t('roles.create')} cancel=${close} />
  <//><//>`;
}

const INITIAL = {
  kind: 'type', rec_type: 'customers', rec_id: '', endpoint: '',
  ...Object.fromEntries(PERMISSIONS.map((one) => [`may_${one}`, one === 'read'])),
};

/** Returns the request for the values of the form: a grant to an endpoint, to a record type, or to one record. */
function grantBody(values) {
  if (values.kind === 'endpoint') return { endpoint: values.endpoint };
  const id = values.rec_id.trim();
  const permissions = PERMISSIONS.filter((one) => values[`may_${one}`]);
  return { rec_type: values.rec_type, permissions, ...(id && { rec_id: id }) };
}

function EndpointField({ form }) {
  const endpoints = useLoad(listEndpoints);
  const options = [['', t('grants.choose')], ...(endpoints.data ?? []).map((row) => [row.endpoint, row.endpoint])];
  return html`<${Field} form=${form} name="endpoint" label=${t('grants.endpoint')} options=${options} />`;
}

function RecordFields({ form }) {
  return html`
    <${Field} form=${form} name="rec_type" label=${t('access.type')} options=${TYPES.map((one) => [one, term('rec_type', one)])} />
    <fieldset>
      <legend>${t('grants.permissions')}</legend>
      <div class="fields">${PERMISSIONS.map((one) => html`
        <${Field} key=${one} form=${form} name=${`may_${one}`} type="checkbox" label=${term('permission', one)} />`)}
      </div>
      ${form.errors.permissions && html`<small class="field-error">${form.errors.permissions}</small>`}
    </fieldset>
    <${Field} form=${form} name="rec_id" label=${t('access.record')} optional spellcheck=${false} />`;
}

/** Adds a grant to a role. */
export function GrantDialog({ role, close, done }) {
  const form = useForm(INITIAL, async (values) => done(await api.post('/v1/rbac/grants', { role_id: role.id, ...grantBody(values) })));
  return html`<${Dialog} title=${t('grants.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="kind" label=${t('grants.kind')}
      options=${[['type', t('grants.on_type')], ['endpoint', t('grants.on_endpoint')]]} />
    ${form.values.kind === 'endpoint' ? html`<${EndpointField} form=${form} />` : html`<${RecordFields} form=${form} />`}
    <${Actions} form=${form} label=${t('grants.create')} cancel=${close} />
  <//><//>`;
}
