import { html, useMemo } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { fullName } from '../customers.js';
import { t } from '../i18n.js';
import { Dialog } from '../ui/dialog.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { CustomerPicker } from '../ui/picker.js';

/**
 * Creates a payer for a customer, or changes one.
 * @param {{payer?: any, customer?: any, close: () => void, done: (payer: any) => void}} props
 */
export function PayerDialog({ payer, customer, close, done }) {
  const key = useMemo(idempotencyKey, []);
  const form = useForm({ customer_id: payer?.customer_id ?? customer?.id ?? '', name: payer?.name ?? '', company: payer?.company ?? '', email: payer?.email ?? '', country: payer?.country ?? 'CHE' }, async (values) => {
    done(await (payer
      ? api.put(`/v1/payers/${payer.id}`, { name: values.name, company: values.company, email: values.email, country: values.country })
      : api.post('/v1/payers', values, { headers: { 'Idempotency-Key': key } })));
  });
  return html`<${Dialog} title=${payer ? t('payers.edit') : t('payers.new')} close=${close}>
    <${Form} form=${form}>
      ${customer ? html`<p><span class="fine">${t('customers.one')}</span><br /><strong>${fullName(customer)}</strong></p>` : !payer && html`<${CustomerPicker} form=${form} name="customer_id" />`}
      <div class="fields">
        <${Field} form=${form} name="name" label=${t('field.name')} autocomplete="off" />
        <${Field} form=${form} name="company" label=${t('field.company')} optional autocomplete="off" />
        <${Field} form=${form} name="email" type="email" label=${t('field.email')} optional autocomplete="off" />
        <${Field} form=${form} name="country" label=${t('field.country')} hint=${t('hint.nationality')} maxlength="3" autocapitalize="characters" />
      </div>
      <${Actions} form=${form} label=${payer ? t('do.save') : t('payers.create')} cancel=${close} />
    <//>
  <//>`;
}
