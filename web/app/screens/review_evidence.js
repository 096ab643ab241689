import { html } from '../lib.js';
import { country } from '../countries.js';
import { fullName } from '../customers.js';
import { date, phone } from '../format.js';
import { t, term } from '../i18n.js';
import { Badge, Facts } from '../ui/display.js';
import { Empty } from '../ui/feedback.js';
import { Card } from '../ui/page.js';
import { HitsOfCase } from './hits_of_case.js';
import { DocumentLine, hasNoScan, History, isNewSince } from './kyc.js';
import { PossibleSelf } from './pending_decision.js';
import { RequirementList, requirementsOf } from './kyc_steps.js';

function Identity({ customer }) {
  const { address } = customer;
  const town = [address?.postal_code, address?.city].filter(Boolean).join(' ');
  const place = address && [address.street, town, country(address.country)].filter(Boolean).join(', ');
  const more = html`<a class="more" href=${`/customers/${customer.id}`}>${t('customers.open')}</a>`;
  const isBusiness = customer.type === 'business';
  return html`<${Card} title=${t('review.stated')} aside=${more}>
    <${Facts} rows=${[
      [t('field.name'), html`<bdi>${fullName(customer)}</bdi>`],
      !isBusiness && [t('field.date_of_birth'), date(customer.date_of_birth)],
      !isBusiness && [t('field.nationality'), country(customer.nationality)],
      [t('field.address'), place],
      [t('field.email'), customer.email],
      [t('field.phone'), customer.phone && phone(customer.phone)],
      [t('customers.type'), term('customer_type', customer.type)],
    ]} />
  <//>`;
}

function Documents({ kyc, customer }) {
  return html`<${Card} title=${t('kyc.documents')}>
    ${kyc.documents.length
      ? html`<ul class="items">${kyc.documents.map((one) => html`
          <${DocumentLine} key=${one.id} document=${one} customer=${customer} isNew=${isNewSince(kyc, one)}
            noScan=${hasNoScan(kyc, one)} />`)}</ul>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_documents')}>${t('kyc.no_documents_review')}<//>`}
  <//>`;
}

function Due({ kyc }) {
  const rows = requirementsOf(kyc.requirements);
  return rows.length > 0 && html`<${Card} title=${t('kyc.requirements')}><${RequirementList} rows=${rows} /><//>`;
}

/** The basis of a decision: the documents, the customer's own details, what is due, and the history. */
export const Evidence = ({ customer, kyc }) => html`<div class="stack evidence">
  <p class="row"><${Badge} group="kyc_status" value=${kyc.kyc_status} /></p>
  <${PossibleSelf} kyc=${kyc} />
  <${HitsOfCase} hits=${kyc.screening_hits} />
  <${Documents} kyc=${kyc} customer=${customer} />
  <${Identity} customer=${customer} />
  <${Due} kyc=${kyc} />
  <${History} entries=${kyc.history} />
</div>`;
