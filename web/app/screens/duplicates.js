import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { country } from '../countries.js';
import { fullName } from '../customers.js';
import { date, percent, phone } from '../format.js';
import { t, term } from '../i18n.js';
import { Compare, MarkedName } from '../ui/compare.js';
import { Badge } from '../ui/display.js';
import { Notice, toastError } from '../ui/feedback.js';

/** The customers who may be the one that is being created. It is empty for callers who may not ask, and for wrong members: the creation
 * names all of them. */
export async function findDuplicates(body) {
  try {
    return (await api.post('/v1/customers/duplicates', body)).candidates;
  } catch (error) {
    if (error.status === 403 || error.status === 400) return [];
    throw error;
  }
}

/** Remembers that a customer and others are two persons. A caller who may not change the others cannot. */
export async function rememberDistinct(id, others) {
  for (const other of others) {
    await api.post(`/v1/customers/${id}/duplicates/${other}/dismiss`).catch((error) => error.status === 403 || toastError(error));
  }
}

function place(address) {
  const town = [address?.postal_code, address?.city].filter(Boolean).join(' ');
  return [address?.street, town, country(address?.country)].filter(Boolean).join(', ');
}

function rowsOf(mine, { customer, matched, agrees }) {
  const parts = matched.map(({ query, entry }) => [query, entry]);
  const same = (name) => agrees.includes(name);
  const row = (name, show = (value) => value) => [t(`field.${name}`), show(mine[name]), show(customer[name]), same(name)];
  return [
    [t('field.name'), html`<${MarkedName} name=${fullName(mine)} parts=${parts} />`,
      html`<${MarkedName} name=${fullName(customer)} parts=${parts.map(([query, entry]) => [entry, query])} />`],
    row('date_of_birth', date), row('nationality', country), row('email'), row('phone', (value) => value && phone(value)),
    row('address', place),
    same('external_id') && [t('duplicates.external_id'), mine.metadata?.external_id, customer.metadata?.external_id, true],
    [t('customers.type'), term('customer_type', mine.type), term('customer_type', customer.type)],
    [t('customers.kyc'), '', html`<${Badge} group="kyc_status" value=${customer.kyc_status} />`],
  ];
}

function CandidateCard({ mine, candidate, distinct, toggle }) {
  const alike = t('duplicates.alike', { n: percent(candidate.score, 1) });
  return html`<section class=${`candidate ${distinct ? 'distinct' : ''}`} aria-label=${candidate.name}>
    <p class="row"><strong><bdi>${candidate.name}</bdi></strong><span class="num">${alike}</span></p>
    ${!distinct && html`<${Compare} caption=${candidate.name} heads=${[t('duplicates.mine'), t('duplicates.existing')]}
      rows=${rowsOf(mine, candidate)} />`}
    <div class="actions">
      <a role="button" class="quiet" href=${`/customers/${candidate.id}`}>${t('duplicates.open')}</a>
      <button type="button" class="quiet" aria-pressed=${distinct ? 'true' : 'false'} onClick=${toggle}>
        ${t('duplicates.two_persons')}
      </button>
    </div>
  </section>`;
}

/**
 * Shows a new customer beside those who may be the same person.
 * @param {{mine: any, candidates: any[], back: () => void, create: (distinct: string[]) => Promise<any>, busy: boolean}} props
 */
export function Duplicates({ mine, candidates, back, create, busy }) {
  const [distinct, setDistinct] = useState(new Set());
  const toggle = (id) => () => setDistinct((was) => (
    new Set(was.has(id) ? [...was].filter((one) => one !== id) : [...was, id])));
  const left = candidates.filter(({ id }) => !distinct.has(id)).length;
  return html`<div class="stack duplicates">
    <${Notice} tone="warn" title=${t('duplicates.title', { n: candidates.length })}>${t('duplicates.text')}<//>
    ${candidates.map((one) => html`<${CandidateCard} key=${one.id} mine=${mine} candidate=${one} distinct=${distinct.has(one.id)}
      toggle=${toggle(one.id)} />`)}
    <div class="actions">
      <button type="button" class="quiet" onClick=${back}>${t('duplicates.back')}</button>
      <button type="button" disabled=${left > 0 || busy} aria-busy=${busy ? 'true' : undefined} onClick=${() => create([...distinct])}>
        ${t('customers.create')}
      </button>
    </div>
  </div>`;
}
