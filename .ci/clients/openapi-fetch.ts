// Calls a running Kontor with openapi-fetch and the types of openapi-typescript.

import createClient from 'openapi-fetch';
import type { components, paths } from './generated/openapi-typescript.js';

const { KONTOR_URL, KONTOR_USER, KONTOR_PASSWORD } = process.env as Record<string, string>;

function expect(condition: boolean, what: string, got: unknown): asserts condition {
  if (!condition) throw new Error(`openapi-fetch: ${what}: ${JSON.stringify(got)}`);
}

const api = createClient<paths>({ baseUrl: KONTOR_URL });

const signedIn = await api.POST('/authenticate', { body: { user_id: KONTOR_USER!, password: KONTOR_PASSWORD! } });
expect(signedIn.data !== undefined, 'sign in', signedIn.error);
const token: string = signedIn.data.access_token;
api.use({ onRequest: ({ request }) => request.headers.set('Authorization', `Bearer ${token}`) });

const created = await api.POST('/v1/customers', { body: { first_name: 'Fetch', last_name: 'Client, of openapi-fetch', email: 'fetch@example.ch' } });
expect(created.data !== undefined, 'create a customer', created.error);
const status: components['schemas']['KYCStatus'] = created.data.kyc_status;
expect(status === 'not_started', 'the status of a new customer', status);

const page = await api.GET('/v1/customers', { params: { query: { limit: 5, 'search.last_name': '"Client, of openapi-fetch"' } } });
expect(page.data !== undefined, 'list customers', page.error);
const names: string[] = page.data.data.map((customer) => customer.last_name);
expect(names.includes('Client, of openapi-fetch'), 'the found customers', names);

const missing = await api.GET('/v1/payers/{id}', { params: { path: { id: created.data.id } } });
const code: components['schemas']['ErrorCode'] | undefined = missing.error?.code;
expect(code === 'payers.payer_not_found', 'get a missing payer', missing.error);

const wrong = await api.POST('/v1/customers', { body: { last_name: '', email: 'fetch@example.ch' } });
expect(wrong.error?.details?.['last_name'] !== undefined, 'create a customer without a name', wrong.error);
console.log('openapi-typescript and openapi-fetch: the client works');
