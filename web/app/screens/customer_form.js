import { html, useMemo, useRef, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { LANGUAGES, language, t, term } from '../i18n.js';
import { CountryField } from '../ui/country.js';
import { DateField } from '../ui/date_field.js';
import { Dialog } from '../ui/dialog.js';
import { useAction } from '../ui/feedback.js';
import { FirstNameField } from '../ui/first_name.js';
import { Actions, Field, Form, useForm, useEditedRecord } from '../ui/form.js';
import { Duplicates, findDuplicates, rememberDistinct } from './duplicates.js';
import { useNewerRecord } from './newer_record.js';

const BLANK = {
  type: 'individual', first_name: '', last_name: '', email: '', phone: '', date_of_birth: '', nationality: '',
  address: { street: '', postal_code: '', city: '', country: '' },
};

/** Returns the request for the values of the form. The language goes into the metadata, whose other members stay. */
export function requestBody(values, before) {
  const { language: preferred, ...rest } = values;
  return { ...rest, metadata: { ...before?.metadata, language: preferred } };
}

/** Returns the initial values of the form. */
export function valuesOf(customer) {
  const values = Object.fromEntries(Object.entries(BLANK).map(([name, blank]) => [name, customer?.[name] ?? blank]));
  return { ...values, address: { ...BLANK.address, ...customer?.address }, language: customer?.metadata?.language ?? language.get() };
}

/**
 * Creates a customer or changes one. Staff see who the new customer may already be.
 * @param {{customer?: any, etag?: string, close: () => void, done: (customer: any) => void, compare?: boolean}} props
 *   compare: look for duplicates first; the screen needs the texts of the part duplicates
 */
export function CustomerDialog({ customer, etag, close, done, compare }) {
  const key = useMemo(idempotencyKey, []);
  const [found, setFound] = useState(null); // {mine, candidates}
  const sent = useRef(''); // what may have created the customer already: its answer was lost
  const create = (body) => {
    sent.current = JSON.stringify(body);
    return api.post('/v1/customers', body, { headers: { 'Idempotency-Key': key } });
  };
  const anyway = useAction(async (distinct) => {
    const made = await create(found.mine);
    await rememberDistinct(made.id, distinct);
    done(made);
  });
  const edited = useEditedRecord(`/v1/customers/${customer?.id}`, customer, etag);
  const form = useForm(valuesOf(customer), async (values) => {
    const body = requestBody(values, edited.record);
    const isNew = sent.current !== JSON.stringify(body); // otherwise the customer would be a duplicate of itself
    const candidates = compare && isNew ? await findDuplicates(body) : [];
    if (candidates.length) setFound({ mine: body, candidates });
    else done(await (customer ? api.put(`/v1/customers/${customer.id}`, body, edited.match) : create(body)));
  }, customer && (async () => valuesOf(await edited.reload())));
  useNewerRecord(form, edited, etag);
  if (found) {
    return html`<${Dialog} key="found" title=${t('duplicates.head')} close=${close} wide>
      <${Duplicates} ...${found} back=${() => setFound(null)} create=${anyway.run} busy=${anyway.busy} />
    <//>`;
  }
  return html`<${Dialog} title=${customer ? t('customers.edit') : t('customers.new')} close=${close} wide>
    <${Form} form=${form}>
      <div class="fields">
        <${FirstNameField} form=${form} label=${t('field.first_name')} autocomplete="off" />
        <${Field} form=${form} name="last_name" label=${t('field.last_name')} autocomplete="off" />
        <${Field} form=${form} name="email" type="email" label=${t('field.email')} autocomplete="off" />
        <${Field} form=${form} name="phone" type="tel" label=${t('field.phone')} optional hint="+41 79 123 45 67" autocomplete="off" />
        <${DateField} form=${form} name="date_of_birth" label=${t('field.date_of_birth')} optional />
        <${CountryField} form=${form} name="nationality" label=${t('field.nationality')} optional any />
        <${Field} form=${form} name="type" label=${t('customers.type')}
          options=${['individual', 'business'].map((value) => [value, term('customer_type', value)])} />
        <${Field} form=${form} name="language" label=${t('customers.language')} options=${Object.entries(LANGUAGES)} />
      </div>
      <fieldset><legend>${t('field.address')}</legend>
        <div class="fields">
          <${Field} class="wide" form=${form} name="address.street" label=${t('field.street')} optional autocomplete="off" />
          <${Field} form=${form} name="address.postal_code" label=${t('field.postal_code')} optional autocomplete="off" />
          <${Field} form=${form} name="address.city" label=${t('field.city')} optional autocomplete="off" />
          <${CountryField} form=${form} name="address.country" label=${t('field.country')} optional letters=${2} />
        </div>
      </fieldset>
      <${Actions} form=${form} label=${customer ? t('do.save') : t('customers.create')} cancel=${close} />
    <//>
  <//>`;
}
