import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerWith, json, requests, signedIn } from './browser.mjs';

signedIn();
const { api } = await import('../app/api.js');
const { switchLanguage } = await import('../app/i18n.js');
const { clearSession, expired, factorRequest, proofRequest, saveTokens } = await import('../app/session.js');
await switchLanguage('en');

const TOKENS = { access_token: 'first', refresh_token: 'refresh', expires_in: 3600, user_id: 'u1' };
const stale = (more = '') => json({ code: 'auth_m.insufficient_user_authentication', message: 'Confirm' }, 401, {
  'WWW-Authenticate': `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"${more}`,
});
const needsFactor = () => stale(', acr_values="aal2"');

/** Lets everything that is under way reach its next wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => saveTokens(TOKENS, 'anna@example.ch'));

test('the request is repeated after the proof, with the same body', async () => {
  answerWith(stale(), json({ ok: true }));
  const sent = api.put('/v1/users/u2/roles', { roles: ['Advisor'] });
  await settle();
  assert.equal(proofRequest.get().level, 'fresh');
  proofRequest.get().answer(true);
  assert.deepEqual(await sent, { ok: true });
  assert.deepEqual(requests.map(({ init }) => init.body), ['{"roles":["Advisor"]}', '{"roles":["Advisor"]}']);
  assert.equal(proofRequest.get(), null);
});

test('requests share a dialog, which asks for the strongest proof', async () => {
  answerWith(stale(), needsFactor(), stale(), json({ n: 1 }), json({ n: 2 }), json({ n: 3 }));
  const all = [api.get('/v1/a'), api.get('/v1/b'), api.get('/v1/c')];
  await settle();
  assert.equal(proofRequest.get().level, 'aal2');
  proofRequest.get().answer(true);
  assert.deepEqual(await Promise.all(all), [{ n: 1 }, { n: 2 }, { n: 3 }]);
  assert.equal(requests.length, 6);
});

test('a proof that was too weak is followed by a second question, not by a third', async () => {
  answerWith(stale(), needsFactor(), needsFactor());
  const sent = api.get('/v1/a').catch((e) => e);
  await settle();
  proofRequest.get().answer(true);
  await settle();
  await settle();
  assert.equal(proofRequest.get().level, 'aal2');
  proofRequest.get().answer(true);
  const error = await sent;
  assert.deepEqual([error.status, error.cancelled], [401, false]);
});

test('cancelling fails every waiting request, and the next one asks again', async () => {
  answerWith(stale(), stale(), stale(), json({ ok: true }));
  const both = [api.get('/v1/a'), api.get('/v1/b')].map((one) => one.catch((e) => e));
  await settle();
  proofRequest.get().answer(false);
  assert.deepEqual((await Promise.all(both)).map((error) => [error.code, error.cancelled]), [
    ['auth_m.insufficient_user_authentication', true], ['auth_m.insufficient_user_authentication', true],
  ]);
  const again = api.get('/v1/a');
  await settle();
  proofRequest.get().answer(true);
  assert.deepEqual(await again, { ok: true });
});

test('signing out closes the dialog', async () => {
  answerWith(stale());
  const sent = api.get('/v1/a').catch((e) => e);
  await settle();
  clearSession();
  assert.equal((await sent).cancelled, true);
  assert.equal(proofRequest.get(), null);
});

test('a second factor that is required is set up first, then the request is repeated', async () => {
  const refused = () => json({ code: 'auth_m.factor_required', message: 'Set up a second factor' }, 403);
  answerWith(refused(), refused(), json({ n: 1 }), json({ n: 2 }));
  const both = [api.get('/v1/a'), api.post('/v1/b', { name: 'kept' })];
  await settle();
  factorRequest.get().answer(true);
  assert.deepEqual(await Promise.all(both), [{ n: 1 }, { n: 2 }]);
  assert.equal(requests[3].init.body, '{"name":"kept"}');
});

test('another 403 asks for nothing', async () => {
  answerWith(json({ code: 'common.forbidden', message: 'No' }, 403));
  assert.equal((await api.get('/v1/a').catch((e) => e)).status, 403);
  assert.equal(factorRequest.get(), null);
});

/** Plays what another tab has written, null after a sign-out. */
function writeInAnotherTab(tokens) {
  if (tokens) localStorage.setItem('kontor.session', JSON.stringify(tokens));
  else localStorage.removeItem('kontor.session');
  dispatchEvent(Object.assign(new Event('storage'), { key: 'kontor.session' }));
}

test('a request that waits for a sign-in is never sent as another user', async () => {
  for (const next of [null, { ...TOKENS, access_token: 'theirs', user_id: 'u2' }]) {
    saveTokens(TOKENS, 'anna@example.ch');
    answerWith(json({}, 401), json({}, 401));
    const sent = api.post('/v1/a', { amount: 1 }).catch((e) => e);
    await settle();
    assert.equal(expired.get(), true);
    writeInAnotherTab(next);
    assert.ok((await sent) instanceof Error);
    assert.equal(expired.get(), false);
    assert.equal(requests.length, 2);
  }
});

test('a sign-in of the same user in another tab sends the request', async () => {
  answerWith(json({}, 401), json({}, 401), json({ ok: true }));
  const sent = api.post('/v1/a', { amount: 1 });
  await settle();
  writeInAnotherTab({ ...TOKENS, access_token: 'second', expires_at: Date.now() + 3_600_000 });
  assert.deepEqual(await sent, { ok: true });
});

const needsProof = () => json({ code: 'auth_m.proof_required', message: 'Prove it', details: { methods: ['password', 'totp'] } }, 403);
const bodies = () => requests.map(({ init }) => init.body && JSON.parse(init.body));

test('a change of the sign-in is sent again with the proof, also without a body of its own', async () => {
  answerWith(needsProof(), json({ ok: true }));
  const sent = api.delete('/v1/users/u1/factors/f1');
  await settle();
  assert.deepEqual([proofRequest.get().level, proofRequest.get().methods], ['request', ['password', 'totp']]);
  proofRequest.get().answer(await proofRequest.get().send({ code: '123456' }));
  assert.deepEqual(await sent, { ok: true });
  assert.deepEqual(bodies(), [undefined, { code: '123456' }]);
  assert.equal(requests[1].init.headers['Content-Type'], 'application/json');
  assert.equal(proofRequest.get(), null);
});

test('a wrong proof is an error of the dialog, and the code of a linked account keeps its name', async () => {
  const wrong = json({ code: 'common.invalid_input', message: 'Invalid', details: { factor_code: 'Wrong' } }, 400);
  answerWith(needsProof(), wrong, json({ ok: true }));
  const sent = api.post('/v1/users/u1/identities', { code: 'of the provider' });
  await settle();
  const { send, answer } = proofRequest.get();
  const error = await send({ code: '000000' }).catch((e) => e);
  assert.equal(error.fields.code, 'Wrong');
  answer(await send({ code: '123456' }));
  assert.deepEqual(await sent, { ok: true });
  assert.deepEqual(bodies().slice(1), ['000000', '123456'].map((typed) => ({ code: 'of the provider', factor_code: typed })));
});

test('a password that has just made the session fresh is not asked for again', async () => {
  answerWith(stale(), needsProof(), json({ ok: true }));
  const sent = api.delete('/v1/users/credentials/c1');
  await settle();
  proofRequest.get().answer({ password: 'four words in a row' });
  assert.deepEqual(await sent, { ok: true });
  assert.deepEqual(bodies(), [undefined, undefined, { password: 'four words in a row' }]);
});

test('a proof that is refused by the user cancels the change', async () => {
  answerWith(needsProof());
  const sent = api.post('/v1/users/u1/factors', { type: 'totp' }).catch((e) => e);
  await settle();
  proofRequest.get().answer(false);
  const error = await sent;
  assert.deepEqual([error.code, error.cancelled], ['auth_m.proof_required', true]);
});
