import { html } from '../../lib.js';
import { api } from '../../api.js';
import { PERMISSIONS, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { DateField } from '../../ui/date_field.js';
import { Dialog } from '../../ui/dialog.js';
import { Actions, Field, Form, useEditedRecord, useForm } from '../../ui/form.js';
import { timestamp } from '../../ui/validity.js';

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

const ON_RECORDS = PERMISSIONS.filter((one) => one !== 'create' && one !== 'read_all');
const READ_ONLY = Object.fromEntries(ON_RECORDS.map((one) => [`may_${one}`, one === 'read']));
const INITIAL = { rec_type: 'customers', rec_id: '', expires_at: '', ...READ_ONLY };

/** Grants a role permissions on one record. Those on whole types are in the matrix. */
export function GrantDialog({ role, close, done }) {
  const form = useForm(INITIAL, async (values) => {
    const permissions = ON_RECORDS.filter((one) => values[`may_${one}`]);
    done(await api.post('/v1/rbac/grants', {
      role_id: role.id, rec_type: values.rec_type, rec_id: values.rec_id.trim(), permissions, expires_at: timestamp(values.expires_at),
    }));
  });
  return html`<${Dialog} title=${t('matrix.new_on_record')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="rec_type" label=${t('access.type')} options=${TYPES.map((one) => [one, term('rec_type', one)])} />
    <${Field} form=${form} name="rec_id" label=${t('access.record')} required spellcheck=${false} />
    <fieldset>
      <legend>${t('grants.permissions')}</legend>
      <div class="fields">${ON_RECORDS.map((one) => html`
        <${Field} key=${one} form=${form} name=${`may_${one}`} type="checkbox" label=${term('permission', one)} />`)}
      </div>
      ${form.errors.permissions && html`<small class="field-error">${form.errors.permissions}</small>`}
    </fieldset>
    <${DateField} exact form=${form} name="expires_at" label=${t('grants.expires')} optional />
    <${Actions} form=${form} label=${t('grants.create')} cancel=${close} />
  <//><//>`;
}
