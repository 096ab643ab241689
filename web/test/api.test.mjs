import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerWith, json, requests, signedIn } from './browser.mjs';

signedIn();
const { ApiError, advice, api, queryString } = await import('../app/api.js');
const { switchLanguage } = await import('../app/i18n.js');
const { expired } = await import('../app/session.js');
await switchLanguage('en');

beforeEach(() => signedIn());

test('queryString repeats arrays and leaves out what is empty', () => {
  assert.equal(queryString({ a: [1, 2], b: '', c: null, d: undefined, e: 0, f: 'x y' }), '?a=1&a=2&e=0&f=x+y');
  assert.equal(queryString(), '');
});

test('a request carries token, language and device', async () => {
  answerWith(json({ id: 1 }));
  assert.deepEqual(await api.get('/v1/customers', { limit: 5 }), { id: 1 });
  const [{ url, init }] = requests;
  assert.equal(url, '/v1/customers?limit=5');
  assert.equal(init.headers.Authorization, 'Bearer first');
  assert.equal(init.headers['Accept-Language'], 'en');
  assert.match(init.headers['X-Device-ID'], /^Chrome on Linux \([0-9a-f]{4}\)$/);
});

test('an error keeps what the server said', async () => {
  const body = { status: 400, code: 'common.invalid_input', message: 'Check it', details: { email: 'is missing' } };
  answerWith(json(body, 400, { 'X-Request-ID': 'r1' }));
  const error = await api.post('/v1/customers', {}).catch((e) => e);
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.status, error.code, error.fields, error.requestId], [400, 'common.invalid_input', { email: 'is missing' }, 'r1']);
});

test('an error that is no JSON and a broken line have a message, too', async () => {
  answerWith(new Response('server shutting down', { status: 503, headers: { 'Retry-After': '7' } }), new TypeError('failed to fetch'));
  const away = await api.get('/v1/chats').catch((e) => e);
  assert.equal(away.retryAfter, 7);
  assert.equal(advice(away), 'Try again in 7 seconds.');
  const broken = await api.get('/v1/chats').catch((e) => e);
  assert.deepEqual([broken.status, broken.code], [0, 'network']);
});

test('a token that is refused is renewed once and the request is repeated', async () => {
  answerWith(json({}, 401), json({ access_token: 'second', refresh_token: 'next', expires_in: 3600, user_id: 'u1' }), json({ ok: true }));
  assert.deepEqual(await api.get('/v1/users/me'), { ok: true });
  assert.deepEqual(requests.map(({ url }) => url), ['/v1/users/me', '/v1/token/refresh', '/v1/users/me']);
  assert.equal(requests[2].init.headers.Authorization, 'Bearer second');
  assert.equal(expired.get(), false);
});
