import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerWith, json, requests } from './browser.mjs';

const { api } = await import('../app/api.js');
const { switchLanguage } = await import('../app/i18n.js');
const { clearSession, expired, saveTokens, session, SignedOut } = await import('../app/session.js');
await switchLanguage('en');

const tokens = (access, user = 'u1') => ({ access_token: access, refresh_token: `refresh-${access}`, expires_in: 3600, user_id: user });
const refused = () => json({ code: 'auth_m.unauthorized', message: 'Sign in' }, 401);

/** An answer that arrives when release is called. */
function late() {
  const held = {};
  const answer = new Promise((resolve) => (held.release = resolve));
  held.answer = () => answer;
  return held;
}

/** Lets everything that is under way reach its next wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  clearSession();
  saveTokens(tokens('first'), 'anna@example.ch');
});

test('a refused request of a user who has signed out is not sent as the next user', async () => {
  const held = late();
  answerWith(held.answer, json({ id: 'c1' }));
  const sent = api.post('/v1/customers', { last_name: 'Rochat' }).catch((error) => error);
  await settle();
  clearSession();
  saveTokens(tokens('second', 'u2'), 'beat@example.ch');
  held.release(refused());
  const error = await sent;
  assert.ok(error instanceof SignedOut && error.cancelled);
  assert.equal(requests.length, 1);
});

test('a late answer to a user who has signed out is not shown to the next user', async () => {
  const held = late();
  answerWith(held.answer);
  const sent = api.get('/v1/chats').catch((error) => error);
  await settle();
  clearSession();
  saveTokens(tokens('second', 'u2'), 'beat@example.ch');
  held.release(json([{ id: 'c1' }]));
  assert.ok(await sent instanceof SignedOut);
});

test('the next user of another tab gets no request either, before the tab has noticed the change', async () => {
  answerWith((_, init) => {
    assert.equal(init.headers.Authorization, 'Bearer first');
    localStorage.setItem('kontor.session', JSON.stringify({ ...tokens('second', 'u2'), expires_at: Date.now() + 3_600_000 }));
    return refused();
  }, json({ id: 'c1' }));
  assert.ok(await api.post('/v1/customers', {}).catch((error) => error) instanceof SignedOut);
  assert.equal(requests.length, 1);
  assert.equal(session.get().user_id, 'u2');
});

test('a refresh whose answer is lost is sent again', async () => {
  answerWith(refused(), new TypeError('lost'), json(tokens('second')), json({ ok: true }));
  assert.deepEqual(await api.get('/v1/users/me'), { ok: true });
  assert.deepEqual(requests.map(({ url }) => url), ['/v1/users/me', '/v1/token/refresh', '/v1/token/refresh', '/v1/users/me']);
  assert.equal(requests[2].init.body, requests[1].init.body);
});

test('a refresh that ends after the sign-out keeps no session', async () => {
  const held = late();
  answerWith(refused(), held.answer);
  const sent = api.get('/v1/users/me').catch((error) => error);
  await settle();
  clearSession();
  held.release(json(tokens('refreshed')));
  assert.ok(await sent instanceof SignedOut);
  assert.equal(localStorage.getItem('kontor.session'), null);
  assert.equal(expired.get(), false);
});

test('a refresh that ends after a new sign-in of the same user keeps the new session, in which the request continues', async () => {
  const held = late();
  answerWith(refused(), held.answer, (_, init) => json({ by: init.headers.Authorization }));
  const sent = api.get('/v1/users/me');
  await settle();
  saveTokens(tokens('again'), 'anna@example.ch');
  held.release(json(tokens('refreshed')));
  assert.deepEqual(await sent, { by: 'Bearer again' });
  assert.equal(session.get().access_token, 'again');
});
