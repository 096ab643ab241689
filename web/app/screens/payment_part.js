import { html } from '../lib.js';
import { country } from '../countries.js';
import { date, grouped, money, number } from '../format.js';
import { t, term } from '../i18n.js';
import { usePreferences } from '../preferences.js';
import { Copy, Facts } from '../ui/display.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

/** The lines of an address as a QR-bill prints them; raw are those of a combined address. */
function addressLines(party, raw) {
  if (!party) return [];
  if (raw.length) return [party.name, ...raw].filter(Boolean);
  const town = [party.zip, party.city].filter(Boolean).join(' ');
  const isAbroad = party.country && party.country !== 'CH';
  return [party.name, party.address, town && (isAbroad ? `${party.country}-${town}` : town)].filter(Boolean);
}

/** An amount as a QR-bill prints it: with spaces between thousands, whatever the user's preferences are. */
const printedAmount = (amount) => amount.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, '\u00a0');

const Lines = ({ lines }) => html`<span class="paper-lines">${lines.map((line, i) => html`<span key=${i}>${line}</span>`)}</span>`;

const Part = ({ name, children }) => html`<div class="paper-part"><dt>${name}</dt><dd>${children}</dd></div>`;

/** An empty box with corner marks, which a QR-bill prints for an open amount or an unknown debtor. */
const BlankBox = ({ wide }) => html`
  <svg class=${wide ? 'blank-box wide' : 'blank-box'} viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
    <path d="M0 8V0h6M94 0h6v8M100 32v8h-6M6 40H0v-8" />
  </svg>`;

/** The place of the QR code. The code is not drawn again, because only the one on the bill itself is binding. */
const CodePlaceholder = () => html`<svg class="code-place" viewBox="0 0 46 46" aria-hidden="true">
  <rect class="ground" width="46" height="46" />
  <path class="finder" d="M4 4h9v9H4zM33 4h9v9h-9zM4 33h9v9H4z" />
  <path class="finder-core" d="M7 7h3v3H7zM36 7h3v3h-3zM7 36h3v3H7z" />
  <rect class="cross" x="19.5" y="19.5" width="7" height="7" />
  <path class="cross-arms" d="M22.3 21h1.4v1.3H25v1.4h-1.3V25h-1.4v-1.3H21v-1.4h1.3z" />
</svg>`;

/** The findings of the check against the standard: the server's message, the value and the page. */
export function Findings({ items }) {
  const detail = (item) => [item.value && `«${item.value}»`, item.page && t('invoices.on_page', { page: item.page })];
  return html`<ul class="items findings">${items.map((item, i) => html`<li key=${i}>
    <span class=${`finding ${item.kind === 'violation' ? 'bad' : 'warn'}`}><${Icon} name="warning" size=${16} /></span>
    <div class="grow"><strong>${item.message}</strong><p class="fine">${detail(item).filter(Boolean).join(' · ')}</p></div>
  </li>`)}</ul>`;
}

const vat = (rates) => rates.map(({ rate, amount }) => (amount ? `${rate} % (${amount})` : `${rate} %`)).join('; ');

/** The rows of a billing information in the Swico S1 syntax; absent values are left out. */
function swicoRows(s1) {
  const values = {
    invoice_number: s1.invoice_number,
    invoice_date: date(s1.invoice_date),
    due_date: date(s1.due_date),
    customer_reference: s1.customer_reference,
    uid: s1.uid,
    service_date: [date(s1.service_date), date(s1.service_end)].filter(Boolean).join(' – '),
    vat_rates: vat(s1.vat_rates),
    import_vat: vat(s1.import_vat),
    conditions: s1.conditions.map(({ percent, days }) => t('swico.within', { percent, n: days })).join('; '),
  };
  return Object.entries(values).filter(([, value]) => value).map(([name, value]) => [t(`swico.${name}`), value]);
}

function BillingInformation({ info }) {
  usePreferences();
  if (!info) return null;
  const rows = info.swico ? swicoRows(info.swico) : [];
  return html`<${Card} title=${t('invoices.billing')}>
    ${rows.length > 0 && html`<${Facts} list rows=${rows} />`}<p class="code fine">${info.raw}</p>
  <//>`;
}

function Amount({ bill }) {
  const open = html`<${BlankBox} /><span class="sr">${t('paper.open')}</span>`;
  return html`<dl class="paper-amount">
    <div><dt>${t('paper.currency')}</dt><dd>${bill.currency}</dd></div>
    <div><dt>${t('paper.amount')}</dt><dd>${bill.amount === null ? open : printedAmount(bill.amount)}</dd></div>
  </dl>`;
}

/** The debtor's address, or an empty box; the note for screen readers is left out on the receipt. */
function Debtor({ bill, children }) {
  const lines = addressLines(bill.debtor, bill.debtor?.address_lines);
  return html`<${Part} name=${lines.length ? t('paper.debtor') : t('paper.debtor_blank')}>
    ${lines.length ? html`<${Lines} lines=${lines} />` : html`<${BlankBox} wide />${children}`}
  <//>`;
}

/** The receipt on the left. It repeats the payment part, so screen readers skip it. */
function Receipt({ bill, iban, reference }) {
  return html`<div class="receipt" aria-hidden="true">
    <h2>${t('paper.receipt')}</h2>
    <dl class="paper-text">
      <${Part} name=${t('paper.account')}><span class="num">${iban}</span>
        <${Lines} lines=${addressLines(bill.creditor, bill.address_lines)} /><//>
      ${reference && html`<${Part} name=${t('paper.reference')}><span class="num">${reference}</span><//>`}
      <${Debtor} bill=${bill} />
    </dl>
    <${Amount} bill=${bill} />
    <p class="acceptance">${t('paper.acceptance')}</p>
  </div>`;
}

function Payment({ bill, iban, reference }) {
  const more = [bill.message, bill.billing_information?.raw].filter(Boolean);
  return html`<div class="payment">
    <h2>${t('paper.title')}</h2>
    <div class="paper-code"><${CodePlaceholder} /><${Amount} bill=${bill} /></div>
    <dl class="paper-text">
      <${Part} name=${t('paper.account')}>
        <span class="num">${iban}</span> <${Copy} text=${bill.iban} label=${t('copy.iban')} />
        <${Lines} lines=${addressLines(bill.creditor, bill.address_lines)} />
      <//>
      ${reference && html`<${Part} name=${t('paper.reference')}>
        <span class="num">${reference}</span> <${Copy} text=${bill.reference} label=${t('copy.reference')} />
      <//>`}
      ${more.length > 0 && html`<${Part} name=${t('paper.more')}><${Lines} lines=${more} /><//>`}
      <${Debtor} bill=${bill}><span class="sr">${t('paper.open')}</span><//>
    </dl>
  </div>`;
}

function BillFacts({ bill }) {
  const amount = bill.amount === null ? t('paper.open') : html`<strong class="num">${money(bill.amount, bill.currency)}</strong>`;
  const procedures = bill.alternative_procedures;
  return html`<${Card} title=${t('invoices.facts')}><${Facts} list rows=${[
    [t('paper.amount'), amount],
    [t('invoices.reference_type'), term('reference_type', bill.reference_type)],
    [t('field.country'), country(bill.creditor?.country)],
    bill.page && [t('invoices.found_on'), number(bill.page)],
    procedures.length > 0 && [t('invoices.alternatives'), procedures.join(' · ')],
  ]} /><//>`;
}

/** A QR-bill in the layout of the Swiss standard, with its warnings and facts below. */
export function PaymentPart({ bill }) {
  usePreferences();
  const parts = { bill, iban: grouped(bill.iban), reference: grouped(bill.reference, bill.reference_type) };
  return html`
    <div class="sheet"><section class="paper" aria-label=${t('paper.title')}>
      <${Receipt} ...${parts} /><${Payment} ...${parts} />
    </section></div>
    <div class="grid-2">
      ${bill.warnings.length > 0 && html`<${Card} title=${t('invoices.warnings')}><${Findings} items=${bill.warnings} /><//>`}
      <${BillFacts} bill=${bill} />
      <${BillingInformation} info=${bill.billing_information} />
    </div>`;
}
