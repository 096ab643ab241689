import { html, useMemo } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { namesOf } from '../customers.js';
import { t, term } from '../i18n.js';
import { CountryField } from '../ui/country.js';
import { DateField } from '../ui/date_field.js';
import { Dialog } from '../ui/dialog.js';
import { FirstNameField } from '../ui/first_name.js';
import { Actions, Field, Form, useForm, useEditedRecord } from '../ui/form.js';
import { PersonaPicker } from '../ui/picker.js';

/** A persona's full name. */
export const personaName = namesOf;

const RELATIONS = [
  'spouse', 'parent', 'child', 'guardian', 'legal_representative', 'beneficial_owner', 'authorised_signatory', 'other',
];

const NAMES = ['first_name', 'last_name', 'date_of_birth', 'date_of_death', 'nationality', 'hash_id'];
const valuesOf = (persona) => ({
  ...Object.fromEntries(NAMES.map((name) => [name, persona?.[name] ?? ''])),
  active: persona?.active ?? true,
});

/** Creates a persona, with initial values, or changes one. */
export function PersonaDialog({ persona, initial, etag, close, done }) {
  const key = useMemo(idempotencyKey, []);
  const edited = useEditedRecord(`/v1/personas/${persona?.id}`, persona, etag);
  const form = useForm(valuesOf(persona ?? initial), async (values) => {
    const body = { ...values, date_of_death: values.date_of_death || null };
    for (const name of ['nationality', 'hash_id']) if (!body[name]) delete body[name];
    done(await (persona
      ? api.put(`/v1/personas/${persona.id}`, body, edited.match)
      : api.post('/v1/personas', body, { headers: { 'Idempotency-Key': key } })));
  }, persona && (async () => valuesOf(await edited.reload())));
  return html`<${Dialog} title=${persona ? t('personas.edit') : t('personas.new')} close=${close}>
    <${Form} form=${form}>
      <div class="fields">
        <${FirstNameField} form=${form} label=${t('field.first_name')} autocomplete="off" />
        <${Field} form=${form} name="last_name" label=${t('field.last_name')} autocomplete="off" />
        <${DateField} form=${form} name="date_of_birth" label=${t('field.date_of_birth')} />
        <${DateField} form=${form} name="date_of_death" label=${t('field.date_of_death')} optional />
        <${CountryField} form=${form} name="nationality" label=${t('field.nationality')} optional any />
        <${Field} form=${form} name="hash_id" label=${t('field.hash_id')} optional autocomplete="off" />
      </div>
      ${persona && html`<${Field} form=${form} name="active" type="checkbox" label=${t('active.active')} />`}
      <${Actions} form=${form} label=${persona ? t('do.save') : t('personas.create')} cancel=${close} />
    <//>
  <//>`;
}

/** Links two personas. */
export function LinkDialog({ persona, close, done }) {
  const form = useForm({ linked_persona_id: '', relation: 'spouse' },
    async (body) => done(await api.post(`/v1/personas/${persona.id}/links`, body)));
  return html`<${Dialog} title=${t('personas.link')} close=${close}>
    <${Form} form=${form}>
      <${PersonaPicker} form=${form} name="linked_persona_id" />
      <${Field} form=${form} name="relation" label=${t('personas.relation', { name: personaName(persona) })}
        options=${RELATIONS.map((relation) => [relation, term('relation', relation)])} />
      <${Actions} form=${form} label=${t('personas.link')} cancel=${close} />
    <//>
  <//>`;
}
