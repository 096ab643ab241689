import { api } from './api.js';
import { t } from './i18n.js';

/** A customer's full name, or their e-mail address when there is none. An erased customer has neither. */
export const fullName = (customer) => (customer?.erased_at
  ? t('customers.erased')
  : [customer?.first_name, customer?.last_name].filter(Boolean).join(' ') || customer?.email || '');

const PAGE_LIMIT = 100; // the server's limit

/** Loads the customers of tasks or payers, by id, with one request; customers that the caller may not read are missing. */
export async function customersOf(rows) {
  const ids = [...new Set(rows.map((row) => row.customer_id))].filter(Boolean).slice(0, PAGE_LIMIT);
  if (!ids.length) return {};
  const page = await api.get('/v1/customers', { limit: PAGE_LIMIT, 'search.id': ids.join(',') }).catch(() => ({ data: [] }));
  return Object.fromEntries(page.data.map((one) => [one.id, one]));
}
