import { api } from './api.js';
import { t } from './i18n.js';

/** The first name of people who have one name only, which is their last name. */
export const NO_FIRST_NAME = '-';

/** The names of a person in one text. */
export const namesOf = (person) => [person?.first_name, person?.last_name].filter((part) => part && part !== NO_FIRST_NAME).join(' ');

/** A customer's full name, or their e-mail address when there is none. An erased customer has neither. */
export const fullName = (customer) => (customer?.erased_at
  ? t('customers.erased')
  : namesOf(customer) || customer?.email || '');

const PAGE_LIMIT = 100; // the server's limit

/** Loads the customers of tasks or payers, by id, with one request; customers that the caller may not read are missing. */
export async function customersOf(rows) {
  const ids = [...new Set(rows.map((row) => row.customer_id))].filter(Boolean).slice(0, PAGE_LIMIT);
  if (!ids.length) return {};
  const page = await api.get('/v1/customers', { limit: PAGE_LIMIT, 'search.id': ids.join(',') }).catch(() => ({ data: [] }));
  return Object.fromEntries(page.data.map((one) => [one.id, one]));
}
