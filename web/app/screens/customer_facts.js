import { html } from '../lib.js';
import { country } from '../countries.js';
import { date, phone } from '../format.js';
import { LANGUAGES, t, term } from '../i18n.js';
import { Facts } from '../ui/display.js';
import { Card } from '../ui/page.js';

/** The facts about a customer; plain leaves out what only the bank's staff need. */
export function PersonFacts({ customer, plain }) {
  const rows = [
    [t('field.first_name'), customer.first_name],
    [t('field.last_name'), customer.last_name],
    [t('field.date_of_birth'), date(customer.date_of_birth)],
    [t('field.nationality'), country(customer.nationality)],
    !plain && [t('customers.type'), term('customer_type', customer.type)],
    [t('customers.language'), LANGUAGES[customer.metadata?.language]],
  ];
  const isBusiness = customer.type === 'business'; // A company has no birthday: its empty rows are left out.
  return html`<${Card} title=${t('customers.person')}>
    <${Facts} rows=${rows.filter((row) => row && (row[1] || !isBusiness))} />
  <//>`;
}

function Address({ street, postal_code: postalCode, city, country: code }) {
  const lines = [street, [postalCode, city].filter(Boolean).join(' '), code && country(code)].filter(Boolean);
  return lines.map((line, i) => html`${i > 0 && html`<br />`}${line}`);
}

/** How to reach a customer. */
export function ContactFacts({ customer }) {
  const { address, email, phone: number } = customer;
  return html`<${Card} title=${t('customers.contact')}><${Facts} list rows=${[
    [t('field.email'), html`<a href=${`mailto:${email}`}>${email}</a>`],
    [t('field.phone'), number && html`<a class="num" href=${`tel:${number}`}>${phone(number)}</a>`],
    [t('field.address'), (address?.street || address?.city || address?.postal_code) && html`<${Address} ...${address} />`],
  ]} /><//>`;
}
