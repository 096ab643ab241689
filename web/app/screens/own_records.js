import { html } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { Badge } from '../ui/display.js';
import { Icon } from '../ui/icon.js';
import { documentName, requirementsOf } from './kyc_steps.js';

const MOST = 20; // records of one user; nearly all have one

/** Loads the caller's own records: [{customer, etag, kyc}], the oldest first. */
export function useOwnRecords() {
  const load = useLoad(async () => {
    const { data } = await api.get('/v1/customers', { limit: MOST, sort: 'created_at' });
    const living = data.filter((one) => !one.erased_at);
    return Promise.all(living.map(async ({ id }) => {
      const [read, kyc] = await Promise.all([api.withETag(`/v1/customers/${id}`), api.get(`/v1/customers/${id}/kyc`)]);
      return { customer: read.record, etag: read.etag, kyc };
    }));
  });
  useNotifications((item) => (!item || item.rec_type === 'customers') && load.reload());
  return load;
}

/** The present requirements of a record, without the review that the bank does itself. */
export const needsOf = ({ kyc }) => requirementsOf(kyc.requirements).filter(({ code }) => code !== 'enhanced_review');

const TONE = { verified: 'good', in_review: 'info', pending: 'info' };

/** The documents of a record that still need a photo, as rows like those of requirements. */
export const missingPhotos = ({ kyc }) => kyc.documents.filter(({ id }) => kyc.requirements.missing_scans.includes(id));

/** Where the verification of a record stands, in the words of a customer, with the bank's reason when something is missing. */
export function Standing({ kyc }) {
  const photos = missingPhotos({ kyc });
  if (photos.length && (kyc.kyc_status === 'pending' || kyc.kyc_status === 'in_review')) {
    return html`<div class="standing">
      <p class="row"><${Badge} value=${t('home.photo_missing', { n: photos.length })} tone="warn" /></p>
      <p>${t('home.photo_missing_text', { documents: photos.map(({ type }) => documentName(type)).join(', ') })}</p>
    </div>`;
  }
  const reason = kyc.kyc_status === 'action_required' || kyc.kyc_status === 'rejected' ? kyc.history[0]?.reason : '';
  return html`<div class="standing">
    <p class="row"><${Badge} value=${t(`home.status.${kyc.kyc_status}`)} tone=${TONE[kyc.kyc_status] ?? 'warn'} /></p>
    <p>${t(`home.status_text.${kyc.kyc_status}`)}</p>
    ${reason && html`<blockquote class="prose">${reason}</blockquote>`}
  </div>`;
}

const needText = (code) => t(`home.need.${code}`) === `home.need.${code}` ? documentName(code) : t(`home.need.${code}`);

/** The requirements as a list. */
export const Needs = ({ rows, action }) => html`<ul class="items needs">
  ${rows.map(({ code, when, tone }) => html`<li key=${when + code}>
    <span class="event warn" aria-hidden="true"><${Icon} name="card" size=${16} /></span>
    <span class="grow two-lines"><span>${needText(code)}</span><span>${t(`home.need_when.${when}`)}</span></span>
    ${action ? action(code) : html`<${Badge} value=${t(`kyc.${when}`)} tone=${tone} />`}
  </li>`)}
</ul>`;
