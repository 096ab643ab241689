import { html } from '../lib.js';
import { country } from '../countries.js';
import { date, grouped, money, number } from '../format.js';
import { t, term } from '../i18n.js';
import { usePrefs } from '../prefs.js';
import { Copy, Facts } from '../ui/data.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

/** Lines of an address as a bill prints them. */
function addressLines(party) {
  if (!party) return [];
  if (party.address_lines.length) return [party.name, ...party.address_lines].filter(Boolean);
  const place = [party.zip, party.city].filter(Boolean).join(' ');
  return [party.name, party.address, place && (party.country && party.country !== 'CH' ? `${party.country}-${place}` : place)].filter(Boolean);
}

const Lines = ({ lines }) => html`<span class="paper-lines">${lines.map((line, i) => html`<span key=${i}>${line}</span>`)}</span>`;

const Part = ({ name, children, copy, label }) => (children ? html`<div class="paper-part"><dt>${name}</dt><dd>${children}${copy && html`<${Copy} text=${copy} label=${label} />`}</dd></div>` : null);

/** What an open amount or an unknown payer looks like on paper: an empty box with corner marks. */
const Blank = ({ wide }) => html`<svg class=${wide ? 'blank-box wide' : 'blank-box'} viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true"><path d="M0 8V0h6M94 0h6v8M100 32v8h-6M6 40H0v-8" /></svg>`;

/** The place of the code. It is not drawn again: only the code on the bill itself is binding. */
const CodePlace = () => html`<svg class="code-place" viewBox="0 0 46 46" aria-hidden="true">
  <path class="finder" d="M1 1h11v11H1zM34 1h11v11H34zM1 34h11v11H1z" /><path class="finder-core" d="M4 4h5v5H4zM37 4h5v5h-5zM4 37h5v5H4z" />
  <path class="dots" d="M15 2h3v3h-3zM21 2h6v2h-6zM29 5h3v4h-3zM15 8h5v3h-5zM24 8h3v3h-3zM2 15h3v5H2zM8 15h3v3H8zM2 24h4v3H2zM8 22h2v5H8zM14 14h3v3h-3zM35 15h4v3h-4zM42 15h2v5h-2zM36 22h3v4h-3zM41 25h3v6h-3zM15 35h4v3h-4zM22 34h2v5h-2zM28 36h5v2h-5zM15 42h3v2h-3zM21 42h6v2h-6zM35 34h3v4h-3zM41 36h3v3h-3zM36 42h7v2h-7z" />
  <rect class="cross" x="18" y="18" width="10" height="10" /><path class="cross-arms" d="M22 19.700h2v2.300h2.300v2H24v2.300h-2V24h-2.300v-2H22z" />
</svg>`;

/** What a check against the standard found: in the server's words, then what stands there. */
export function Findings({ items }) {
  return html`<ul class="items findings">${items.map((item, i) => html`<li key=${i}><span class=${`finding ${item.kind === 'violation' ? 'bad' : 'warn'}`}><${Icon} name="warning" size=${16} /></span>
    <div class="grow"><strong>${item.message}</strong>
      <p class="fine">${[item.value && `«${item.value}»`, item.page && t('invoices.on_page', { page: item.page })].filter(Boolean).join(' · ')}</p></div></li>`)}</ul>`;
}

const vat = (rates) => rates.map(({ rate, amount }) => (amount ? `${rate} % (${amount})` : `${rate} %`)).join('; ');

function Billing({ info }) {
  usePrefs();
  if (!info) return null;
  const s1 = info.swico;
  const rows = s1 ? [
    ['invoice_number', s1.invoice_number], ['invoice_date', date(s1.invoice_date)], ['due_date', date(s1.due_date)], ['customer_reference', s1.customer_reference], ['uid', s1.uid],
    ['service_date', [date(s1.service_date), date(s1.service_end)].filter(Boolean).join(' – ')], ['vat_rates', vat(s1.vat_rates)], ['import_vat', vat(s1.import_vat)],
    ['conditions', s1.conditions.map(({ percent, days }) => t('swico.within', { percent, n: days })).join('; ')],
  ].filter(([, value]) => value).map(([name, value]) => [t(`swico.${name}`), value]) : [];
  return html`<${Card} title=${t('invoices.billing')}>${rows.length > 0 && html`<${Facts} rows=${rows} />`}<p class="code fine">${info.raw}</p><//>`;
}

/** A payment part as the Swiss standard lays it out: amount below the code, the account and the parties beside it. */
export function PaymentPart({ bill }) {
  usePrefs();
  const iban = grouped(bill.iban);
  const reference = grouped(bill.reference, bill.reference_type);
  const { warnings } = bill;
  const debtor = addressLines(bill.debtor);
  const raw = bill.billing_information?.raw;
  return html`
    <section class="paper" aria-label=${t('paper.title')}>
      <h2>${t('paper.title')}</h2>
      <div class="paper-code"><${CodePlace} />
        <dl class="paper-amount"><div><dt>${t('paper.currency')}</dt><dd>${bill.currency}</dd></div><div><dt>${t('paper.amount')}</dt><dd>${bill.amount === null ? html`<${Blank} /><span class="sr">${t('paper.open')}</span>` : number(bill.amount, 2)}</dd></div></dl>
      </div>
      <dl class="paper-text">
        <${Part} name=${t('paper.account')}><span class="num">${iban}</span> <${Copy} text=${bill.iban} label=${t('copy.iban')} /><${Lines} lines=${addressLines(bill.creditor)} /><//>
        ${reference && html`<${Part} name=${t('paper.reference')} copy=${bill.reference} label=${t('copy.reference')}><span class="num">${reference}</span> <//>`}
        ${(bill.message || raw) && html`<${Part} name=${t('paper.more')}><${Lines} lines=${[bill.message, raw].filter(Boolean)} /><//>`}
        <${Part} name=${debtor.length ? t('paper.debtor') : t('paper.debtor_blank')}>${debtor.length ? html`<${Lines} lines=${debtor} />` : html`<${Blank} wide /><span class="sr">${t('paper.open')}</span>`}<//>
      </dl>
    </section>
    ${warnings.length > 0 && html`<${Card} title=${t('invoices.warnings')}><${Findings} items=${warnings} /><//>`}
    <${Card} title=${t('invoices.facts')}><${Facts} rows=${[
      [t('paper.amount'), bill.amount === null ? t('paper.open') : html`<strong class="num">${money(bill.amount, bill.currency)}</strong>`],
      [t('invoices.reference_type'), term('reference_type', bill.reference_type)], [t('field.country'), country(bill.creditor?.country)], bill.page && [t('invoices.found_on'), number(bill.page)],
      bill.alternative_procedures.length > 0 && [t('invoices.alternatives'), bill.alternative_procedures.join(' · ')],
    ]} /><//>
    <${Billing} info=${bill.billing_information} />`;
}
