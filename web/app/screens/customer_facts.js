import { html } from '../lib.js';
import { country } from '../countries.js';
import { date, phone } from '../format.js';
import { LANGUAGES, t, term } from '../i18n.js';
import { Dash, Facts } from '../ui/display.js';
import { InPlace } from '../ui/in_place.js';
import { Card } from '../ui/page.js';

/** A field of a customer that is edited in place, with save(changes) as a right. */
function editable({ customer, save, name, shown = customer[name], type }) {
  if (!save) return shown;
  return html`<${InPlace} label=${t(`field.${name}`)} value=${customer[name]} type=${type}
    save=${(value, etag) => save({ [name]: value }, etag)}>${shown || html`<${Dash} />`}<//>`;
}

/** The facts about a customer; plain leaves out what only the bank's staff need; save: changes members, absent without the right. */
export function PersonFacts({ customer, plain, save }) {
  const rows = [
    [t('field.first_name'), editable({ customer, save, name: 'first_name' })],
    [t('field.last_name'), editable({ customer, save, name: 'last_name' })],
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
export function ContactFacts({ customer, save }) {
  const { address, email, phone: number } = customer;
  const mail = html`<a href=${`mailto:${email}`}>${email}</a>`;
  const call = number && html`<a class="num" href=${`tel:${number}`}>${phone(number)}</a>`;
  return html`<${Card} title=${t('customers.contact')}><${Facts} list rows=${[
    [t('field.email'), editable({ customer, save, name: 'email', shown: mail, type: 'email' })],
    [t('field.phone'), editable({ customer, save, name: 'phone', shown: call, type: 'tel' })],
    [t('field.address'), (address?.street || address?.city || address?.postal_code) && html`<${Address} ...${address} />`],
  ]} /><//>`;
}
