import { html, useState } from '../lib.js';
import { api, ApiError, idempotencyKey } from '../api.js';
import { may } from '../access.js';
import { uploadPath } from '../file_lists.js';
import { t, term } from '../i18n.js';
import { uploadFile } from '../upload.js';
import { useUnsaved } from '../unsaved.js';
import { CountryField } from '../ui/country.js';
import { DateField } from '../ui/date_field.js';
import { Dialog } from '../ui/dialog.js';
import { toastError } from '../ui/feedback.js';
import { PhotoButtons } from '../ui/files.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { DecisionForm, useDecision } from './decision_form.js';
import { TYPES } from './kyc_steps.js';


/** The server's messages name the fields of a list of documents; the form has the fields of one. */
const fieldMessages = (details) => Object.fromEntries(Object.entries(details)
  .map(([name, text]) => [name.replace(/^documents[.[]\d+\]?\./, ''), text]));

/** Returns the id of a document that was just submitted. The server recognizes a document by its type and number. */
async function submittedId(customer, { type, number }) {
  const { documents } = await api.get(`/v1/customers/${customer.id}/kyc`);
  const plain = (text) => text.replaceAll(/\s/g, '').toLowerCase();
  return documents.findLast((one) => one.type === type && plain(one.number) === plain(number))?.id ?? documents.at(-1).id;
}

/** Uploads photos to a document; returns whether one is missing because an upload failed. */
async function uploadPhotos(customer, document, files) {
  const path = uploadPath({ type: 'kyc_documents', parent: customer.id, record: await submittedId(customer, document) });
  let missing = false;
  for (const file of files) {
    await uploadFile(path, file, { key: idempotencyKey() }).catch((error) => {
      missing = true;
      toastError(error);
    });
  }
  return missing;
}

/** The photos or scans of a document, chosen or taken with the camera of a phone. */
function Photos({ files, take, remove, error }) {
  return html`<fieldset class="photos" aria-invalid=${error ? 'true' : undefined}>
    <legend>${t('files.photos')}</legend>
    <${PhotoButtons} take=${take} />
    ${files.length > 0 && html`<ul class="items">${files.map((file) => html`<li key=${file.name + file.size}>
      <span class="grow">${file.name}</span>
      <button type="button" class="bare" aria-label=${t('files.dismiss', { name: file.name })} onClick=${() => remove(file)}>
        <${Icon} name="close" size=${16} />
      </button>
    </li>`)}</ul>`}
    ${error && html`<small class="field-error" role="alert">${error}</small>`}
  </fieldset>`;
}

/**
 * Adds a document with its photos. A reviewer may verify the customer with it at the same time.
 * @param {{customer: any, photo?: boolean, close: () => void, done: (answer: {missing?: boolean}) => void}} props
 *   photo: whether the document needs one, as for customers
 */
export function DocumentDialog({ customer, photo, close, done }) {
  const isReviewer = may('customers', 'update');
  const [files, setFiles] = useState([]);
  const initial = { type: 'passport', number: '', expiry_date: '', country: 'CHE', verify: false };
  const form = useForm(initial, async ({ verify, ...document }) => {
    if (photo && !files.length && document.number) {
      const text = t('files.photo_needed');
      throw new ApiError({ status: 400, message: text, details: { photo: text } });
    }
    const body = { documents: [document] };
    if (verify) body.verified_at = new Date().toISOString();
    try {
      await api.put(`/v1/customers/${customer.id}/kyc`, body);
    } catch (error) {
      if (error.details) error.details = fieldMessages(error.details);
      throw error;
    }
    done({ missing: files.length > 0 && await uploadPhotos(customer, document, files) });
  });
  useUnsaved(files.length > 0 && !form.busy);
  const take = (added) => {
    setFiles((was) => [...was, ...added]);
    form.clear('photo');
  };
  return html`<${Dialog} title=${t('kyc.add')} close=${close}>
    <${Form} form=${form}>
      <div class="fields">
        <${Field} form=${form} name="type" label=${t('field.type')} options=${TYPES.map((type) => [type, term('document', type)])} />
        <${Field} form=${form} name="number" label=${t('field.number')} autocomplete="off" spellcheck=${false} />
        <${DateField} form=${form} name="expiry_date" label=${t('field.expiry_date')} />
        <${CountryField} form=${form} name="country" label=${t('field.country')} />
      </div>
      <${Photos} files=${files} take=${take} error=${form.errors.photo}
        remove=${(file) => setFiles((was) => was.filter((one) => one !== file))} />
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
