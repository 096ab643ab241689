import { html } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { t, term } from '../i18n.js';
import { CountryField } from '../ui/country.js';
import { Dialog } from '../ui/dialog.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { DecisionForm, useDecision } from './decision_form.js';
import { TYPES } from './kyc_steps.js';


/** The server's messages name the fields of a list of documents; the form has the fields of one. */
const fieldMessages = (details) => Object.fromEntries(Object.entries(details)
  .map(([name, text]) => [name.replace(/^documents[.[]\d+\]?\./, ''), text]));

/** Adds a document. A reviewer may verify the customer with it at the same time. */
export function DocumentDialog({ customer, close, done }) {
  const isReviewer = may('customers', 'update');
  const initial = { type: 'passport', number: '', expiry_date: '', country: 'CHE', verify: false };
  const form = useForm(initial, async ({ verify, ...document }) => {
    const body = { documents: [document] };
    if (verify) body.verified_at = new Date().toISOString();
    try {
      done(await api.put(`/v1/customers/${customer.id}/kyc`, body));
    } catch (error) {
      if (error.details) error.details = fieldMessages(error.details);
      throw error;
    }
  });
  return html`<${Dialog} title=${t('kyc.add')} close=${close}>
    <${Form} form=${form}>
      <div class="fields">
        <${Field} form=${form} name="type" label=${t('field.type')} options=${TYPES.map((type) => [type, term('document', type)])} />
        <${Field} form=${form} name="number" label=${t('field.number')} autocomplete="off" spellcheck=${false} />
        <${Field} form=${form} name="expiry_date" type="date" label=${t('field.expiry_date')} />
        <${CountryField} form=${form} name="country" label=${t('field.country')} />
      </div>
      ${isReviewer && html`<${Field} form=${form} name="verify" type="checkbox" label=${t('kyc.verify_now')} />`}
      <${Actions} form=${form} label=${t('kyc.add')} cancel=${close} />
    <//>
  <//>`;
}

/** A reviewer's decision in a dialog. */
export function DecisionDialog({ customer, kyc, etag, close, done, reload }) {
  const decision = useDecision({ kyc, etag, customer, done, reload });
  return html`<${Dialog} title=${t('kyc.decide')} close=${close}>
    <${DecisionForm} decision=${decision} cancel=${close} />
  <//>`;
}
