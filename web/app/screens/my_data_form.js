import { html, useMemo } from '../lib.js';
import { api, ApiError, idempotencyKey } from '../api.js';
import { language, t } from '../i18n.js';
import { session } from '../session.js';
import { CountryField } from '../ui/country.js';
import { DateField } from '../ui/date_field.js';
import { Dialog } from '../ui/dialog.js';
import { FirstNameField } from '../ui/first_name.js';
import { Actions, Field, Form, useForm, useEditedRecord } from '../ui/form.js';
import { requestBody, valuesOf } from './customer_form.js';
import { useNewerRecord } from './newer_record.js';

/** The members that the bank needs of a person, in the order of the form. */
const NEEDED = ['first_name', 'last_name', 'email', 'date_of_birth', 'nationality', 'address.street', 'address.postal_code', 'address.city',
  'address.country'];

/** The login of the user, if it is an e-mail address. */
function ownEmail() {
  const login = session.get()?.login ?? '';
  return login.includes('@') ? login : '';
}

/** Throws an error that names the empty ones of the needed fields. */
function checkNeeded(values) {
  const at = (name) => name.split('.').reduce((object, part) => object?.[part], values);
  const empty = NEEDED.filter((name) => !String(at(name) ?? '').trim());
  if (!empty.length) return;
  const fields = Object.fromEntries(empty.map((name) => [name, t('form.needed_missing')]));
  throw new ApiError({ status: 400, message: t('form.needed_missing'), details: fields });
}

const Needed = ({ label }) => html`${label}<span class="needed" aria-hidden="true"> *</span>`;

/**
 * The user's own data in a form of their own: a person, with what the bank needs marked.
 * @param {{customer?: any, etag?: string, close: () => void, done: () => void}} props
 */
export function MyDataDialog({ customer, etag, close, done }) {
  const key = useMemo(idempotencyKey, []);
  const edited = useEditedRecord(`/v1/customers/${customer?.id}`, customer, etag);
  const form = useForm(customer ? valuesOf(customer) : { ...valuesOf(), email: ownEmail() }, async (values) => {
    if (values.type === 'individual') checkNeeded(values);
    const body = requestBody({ ...values, language: language.get() }, edited.record);
    await (customer
      ? api.put(`/v1/customers/${customer.id}`, body, edited.match)
      : api.post('/v1/customers', body, { headers: { 'Idempotency-Key': key } }));
    done();
  }, customer && (async () => valuesOf(await edited.reload())));
  useNewerRecord(form, edited, etag);
  const needed = (name) => html`<${Needed} label=${t(name)} />`;
  const required = { 'aria-required': 'true' };
  return html`<${Dialog} title=${customer ? t('home.edit') : t('home.begin')} close=${close} wide>
    <${Form} form=${form}>
      <p class="fine">${t('form.needed_note')}</p>
      <div class="fields">
        <${FirstNameField} form=${form} label=${needed('field.first_name')} autocomplete="given-name" ...${required} />
        <${Field} form=${form} name="last_name" label=${needed('field.last_name')} autocomplete="family-name" ...${required} />
        <${Field} form=${form} name="email" type="email" label=${needed('field.email')} autocomplete="email" ...${required} />
        <${Field} form=${form} name="phone" type="tel" label=${t('field.phone')} hint="+41 79 123 45 67" autocomplete="tel" />
        <${DateField} form=${form} name="date_of_birth" label=${needed('field.date_of_birth')} autocomplete="bday"
          ...${required} />
        <${CountryField} form=${form} name="nationality" label=${needed('field.nationality')} any />
      </div>
      <fieldset><legend>${t('field.address')}</legend>
        <div class="fields">
          <${Field} class="wide" form=${form} name="address.street" label=${needed('field.street')} autocomplete="street-address"
            ...${required} />
          <${Field} form=${form} name="address.postal_code" label=${needed('field.postal_code')} autocomplete="postal-code"
            ...${required} />
          <${Field} form=${form} name="address.city" label=${needed('field.city')} autocomplete="address-level2" ...${required} />
          <${CountryField} form=${form} name="address.country" label=${needed('field.country')} letters=${2} />
        </div>
      </fieldset>
      <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
    <//>
  <//>`;
}
