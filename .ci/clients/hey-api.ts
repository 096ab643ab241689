// Calls a running Kontor with the client that @hey-api/openapi-ts generates.

import { client } from './generated/hey-api/client.gen.js';
import { authSignIn, customersCreate, customersList, payersGet } from './generated/hey-api/sdk.gen.js';
import type { ErrorCode, KycStatus } from './generated/hey-api/types.gen.js';

const { KONTOR_URL, KONTOR_USER, KONTOR_PASSWORD } = process.env as Record<string, string>;

function expect(condition: boolean, what: string, got: unknown): asserts condition {
  if (!condition) throw new Error(`@hey-api/openapi-ts: ${what}: ${JSON.stringify(got)}`);
}

client.setConfig({ baseUrl: KONTOR_URL });

const signedIn = await authSignIn({ body: { user_id: KONTOR_USER!, password: KONTOR_PASSWORD! } });
expect(signedIn.data !== undefined, 'sign in', signedIn.error);
const token: string = signedIn.data.access_token;
client.setConfig({ auth: () => token });

const created = await customersCreate({ body: { first_name: 'Hey', last_name: 'Client, of hey-api', email: 'hey@example.ch' } });
expect(created.data !== undefined, 'create a customer', created.error);
const status: KycStatus = created.data.kyc_status;
expect(status === 'not_started', 'the status of a new customer', status);

const page = await customersList({ query: { limit: 5, 'search.last_name': '"Client, of hey-api"' } });
expect(page.data !== undefined, 'list customers', page.error);
const names: string[] = page.data.data.map((customer) => customer.last_name);
expect(names.includes('Client, of hey-api'), 'the found customers', names);

const missing = await payersGet({ path: { id: created.data.id } });
const code: ErrorCode | undefined = missing.error?.code;
expect(code === 'payers.payer_not_found', 'get a missing payer', missing.error);

const wrong = await customersCreate({ body: { last_name: '', email: 'hey@example.ch' } });
expect(wrong.error?.details?.['last_name'] !== undefined, 'create a customer without a name', wrong.error);
console.log('@hey-api/openapi-ts: the client works');
