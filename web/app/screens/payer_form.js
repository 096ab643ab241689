import { html, useMemo } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { fullName } from '../customers.js';
import { t } from '../i18n.js';
import { CountryField } from '../ui/country.js';
import { Dialog } from '../ui/dialog.js';
import { Actions, Field, Form, useForm, useEditedRecord } from '../ui/form.js';
import { CustomerPicker } from '../ui/picker.js';
import { useNewerRecord } from './newer_record.js';

const BLANK = { name: '', company: '', email: '', country: 'CHE' };
const valuesOf = (payer) => Object.fromEntries(Object.entries(BLANK).map(([name, blank]) => [name, payer?.[name] ?? blank]));

/**
 * Creates a payer for a customer or changes one.
 * @param {{payer?: any, etag?: string, customer?: any, close: () => void, done: (payer: any) => void}} props
 */
export function PayerDialog({ payer, etag, customer, close, done }) {
  const key = useMemo(idempotencyKey, []);
  const edited = useEditedRecord(`/v1/payers/${payer?.id}`, payer, etag);
  const form = useForm({ customer_id: payer?.customer_id ?? customer?.id ?? '', ...valuesOf(payer) }, async (values) => {
    const { customer_id: owner, ...changes } = values;
    done(await (payer
      ? api.put(`/v1/payers/${payer.id}`, changes, edited.match)
      : api.post('/v1/payers', { customer_id: owner, ...changes }, { headers: { 'Idempotency-Key': key } })));
  }, payer && (async () => valuesOf(await edited.reload())));
  useNewerRecord(form, edited, etag);
  return html`<${Dialog} title=${payer ? t('payers.edit') : t('payers.new')} close=${close}>
    <${Form} form=${form}>
      ${customer && html`<p><span class="fine">${t('customers.one')}</span><br /><strong>${fullName(customer)}</strong></p>`}
      ${!customer && !payer && html`<${CustomerPicker} form=${form} name="customer_id" />`}
      <div class="fields">
        <${Field} form=${form} name="name" label=${t('field.name')} autocomplete="off" />
        <${Field} form=${form} name="company" label=${t('field.company')} optional autocomplete="off" />
        <${Field} form=${form} name="email" type="email" label=${t('field.email')} optional autocomplete="off" />
        <${CountryField} form=${form} name="country" label=${t('field.country')} any />
      </div>
      <${Actions} form=${form} label=${payer ? t('do.save') : t('payers.create')} cancel=${close} />
    <//>
  <//>`;
}
