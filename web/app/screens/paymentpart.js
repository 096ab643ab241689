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
  <rect class="ground" width="46" height="46" /><path class="finder" d="M4 4h9v9H4zM33 4h9v9h-9zM4 33h9v9H4z" /><path class="finder-core" d="M7 7h3v3H7zM36 7h3v3h-3zM7 36h3v3H7z" />
  <rect class="cross" x="19.5" y="19.5" width="7" height="7" /><path class="cross-arms" d="M22.3 21h1.4v1.3H25v1.4h-1.3V25h-1.4v-1.3H21v-1.4h1.3z" />
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
  return html`<${Card} title=${t('invoices.billing')}>${rows.length > 0 && html`<${Facts} list rows=${rows} />`}<p class="code fine">${info.raw}</p><//>`;
}

/** The amount with its currency, in two small columns. */
const Amount = ({ bill }) => html`<dl class="paper-amount"><div><dt>${t('paper.currency')}</dt><dd>${bill.currency}</dd></div><div><dt>${t('paper.amount')}</dt><dd>${bill.amount === null ? html`<${Blank} /><span class="sr">${t('paper.open')}</span>` : spaced(bill.amount)}</dd></div></dl>`;

/** An amount as a bill prints it: thousands set off by a space, whatever the user's preferences are. */
const spaced = (amount) => amount.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, '\u00a0');

/** The receipt to the left of the payment part. It repeats what is beside it, so it is not read out. */
function Receipt({ bill, iban, reference, debtor }) {
  return html`<div class="receipt" aria-hidden="true">
    <h2>${t('paper.receipt')}</h2>
    <dl class="paper-text">
      <${Part} name=${t('paper.account')}><span class="num">${iban}</span><${Lines} lines=${addressLines(bill.creditor)} /><//>
      ${reference && html`<${Part} name=${t('paper.reference')}><span class="num">${reference}</span><//>`}
      <${Part} name=${debtor.length ? t('paper.debtor') : t('paper.debtor_blank')}>${debtor.length ? html`<${Lines} lines=${debtor} />` : html`<${Blank} wide />`}<//>
    </dl>
    <${Amount} bill=${bill} />
    <p class="acceptance">${t('paper.acceptance')}</p>
  </div>`;
}

/** A payment part as the Swiss standard lays it out, with its receipt, and below it what there is to say about it. */
export function PaymentPart({ bill }) {
  usePrefs();
  const iban = grouped(bill.iban);
  const reference = grouped(bill.reference, bill.reference_type);
  const { warnings } = bill;
  const debtor = addressLines(bill.debtor);
  const raw = bill.billing_information?.raw;
  return html`
    <div class="sheet"><section class="paper" aria-label=${t('paper.title')}>
      <${Receipt} bill=${bill} iban=${iban} reference=${reference} debtor=${debtor} />
      <div class="payment">
        <h2>${t('paper.title')}</h2>
        <div class="paper-code"><${CodePlace} /><${Amount} bill=${bill} /></div>
        <dl class="paper-text">
          <${Part} name=${t('paper.account')}><span class="num">${iban}</span> <${Copy} text=${bill.iban} label=${t('copy.iban')} /><${Lines} lines=${addressLines(bill.creditor)} /><//>
          ${reference && html`<${Part} name=${t('paper.reference')} copy=${bill.reference} label=${t('copy.reference')}><span class="num">${reference}</span> <//>`}
          ${(bill.message || raw) && html`<${Part} name=${t('paper.more')}><${Lines} lines=${[bill.message, raw].filter(Boolean)} /><//>`}
          <${Part} name=${debtor.length ? t('paper.debtor') : t('paper.debtor_blank')}>${debtor.length ? html`<${Lines} lines=${debtor} />` : html`<${Blank} wide /><span class="sr">${t('paper.open')}</span>`}<//>
        </dl>
      </div>
    </section></div>
    <div class="grid-2">
      ${warnings.length > 0 && html`<${Card} title=${t('invoices.warnings')}><${Findings} items=${warnings} /><//>`}
      <${Card} title=${t('invoices.facts')}><${Facts} list rows=${[
        [t('paper.amount'), bill.amount === null ? t('paper.open') : html`<strong class="num">${money(bill.amount, bill.currency)}</strong>`],
        [t('invoices.reference_type'), term('reference_type', bill.reference_type)], [t('field.country'), country(bill.creditor?.country)], bill.page && [t('invoices.found_on'), number(bill.page)],
        bill.alternative_procedures.length > 0 && [t('invoices.alternatives'), bill.alternative_procedures.join(' · ')],
      ]} /><//>
      <${Billing} info=${bill.billing_information} />
    </div>`;
}
