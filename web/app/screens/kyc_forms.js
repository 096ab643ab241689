import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { t, term } from '../i18n.js';
import { CountryField } from '../ui/country.js';
import { Dialog } from '../ui/dialog.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';

/** The types of documents. */
export const TYPES = ['passport', 'identity_card', 'residence_permit', 'driving_licence', 'proof_of_address', 'other'];
const LEVELS = ['none', 'basic', 'standard', 'enhanced'];

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

/** Returns the states that a reviewer may choose now; the system sets the others. */
export const nextStates = ({ transitions }) => Object.keys(transitions).filter((state) => transitions[state].includes('reviewer'));

/** Records a reviewer's decision. */
export function StatusDialog({ customer, kyc, close, done }) {
  const [next, setNext] = useState(() => nextStates(kyc));
  const form = useForm({ kyc_status: next[0], verification_level: kyc.verification_level, reason: '' },
    async (body) => done(await api.patch(`/v1/customers/${customer.id}/kyc/status`, body)),
    async () => {
      const now = await api.get(`/v1/customers/${customer.id}/kyc`);
      const states = nextStates(now);
      setNext(states);
      if (!states.includes(form.values.kyc_status)) form.set('kyc_status', states[0] ?? '');
      return { verification_level: now.verification_level };
    });
  return html`<${Dialog} title=${t('kyc.decide')} close=${close}>
    <${Form} form=${form}>
      <${Field} form=${form} name="kyc_status" label=${t('kyc.next')}
        options=${next.map((state) => [state, term('kyc_status', state)])} />
      <${Field} form=${form} name="verification_level" label=${t('customers.level')}
        options=${LEVELS.map((level) => [level, term('verification_level', level)])} />
      <${Field} form=${form} name="reason" label=${t('kyc.reason')} rows=${3} hint=${t('kyc.reason_hint')} />
      <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
    <//>
  <//>`;
}
