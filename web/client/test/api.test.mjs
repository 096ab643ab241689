// The client against a real server.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { etagOf, is, isNull, Kontor, KontorError, NotModified, NotSignedIn, SecondFactorRequired } from 'kontor-client';

import { address, apiKey, password, quick, recorded, signedIn, totp, user } from './harness.mjs';

const run = crypto.randomUUID(); // The tests may be repeated on one server.

const code = (wanted) => (error) => error instanceof KontorError && error.code === wanted;

test('records are created, read, changed and protected from lost updates', async () => {
  const kontor = await signedIn({ language: 'de' });
  const created = await kontor.customers.create({ first_name: 'Anna', last_name: 'Keller', email: 'anna@example.ch', phone: '+41446681800', metadata: { a: 1 } });
  assert.equal(created.type, 'individual');
  const changed = await kontor.customers.update(created.id, { phone: null, last_name: 'Muster' }, { ifMatch: created });
  assert.deepEqual([changed.phone, changed.last_name, changed.first_name], [null, 'Muster', 'Anna']);
  await assert.rejects(kontor.customers.update(created.id, { last_name: 'Lost' }, { ifMatch: created }), code('common.precondition_failed'));
  await assert.rejects(kontor.customers.get(created.id, { ifNoneMatch: etagOf(changed) }), NotModified);
  assert.throws(() => etagOf({}), TypeError);
  await assert.rejects(kontor.customers.create({ email: 'anna' }), (error) => code('common.invalid_input')(error) && error.fields.last_name === 'Dieses Feld ist erforderlich.' && error.requestId !== undefined);
  await assert.rejects(kontor.payers.get(created.id), (error) => code('payers.payer_not_found')(error) && error.status === 404 && !error.retryable);
  for (const id of ['', '.', '..']) await assert.rejects(kontor.customers.get(id), TypeError);
  await assert.rejects(kontor.customers.get('../payers?x#y'), code('common.invalid_input'));
  await kontor.signOut();
  await assert.rejects(kontor.customers.get(created.id), NotSignedIn);
});

test('lists search, page over more than 1,000 rows, and group', async () => {
  const kontor = await signedIn();
  const [comma, quotes] = [`Muster, Söhne ${run}`, `"Other" ${run}`];
  const names = Array.from({ length: 1_010 }, (_, i) => (i % 2 ? quotes : comma));
  while (names.length > 0) {
    await Promise.all(names.splice(0, 20).map((last_name) => kontor.customers.create({ first_name: 'Anna', last_name, email: 'anna@example.ch' })));
  }
  const ids = new Set();
  for await (const customer of kontor.customers.all({ sort: 'id', search: { last_name: is(comma, quotes) } })) ids.add(customer.id);
  assert.equal(ids.size, 1_010);
  for (const [last_name, total] of [[is(comma), 505], [is(quotes, 'Unknown'), 505], [is('null'), 0], [isNull, 0], [is(`* ${run}`), 1_010]]) {
    assert.equal((await kontor.customers.list({ limit: 1, search: { last_name } })).total, total, last_name);
  }
  const grouped = await kontor.customers.listStacked('last_name', { search: { last_name: is(comma, quotes) }, limit: 20 });
  assert.deepEqual(grouped.keys, [quotes, comma]);
  let taken = 0;
  for await (const _ of kontor.customers.all({ limit: 7 })) if (++taken === 9) break;
  assert.equal(taken, 9);
  await assert.rejects(kontor.customers.list({ sort: 'nothing' }), code('query_m.invalid_sort_field'));
});

test('a creation is repeated with its key', async () => {
  const kontor = await signedIn();
  const input = { first_name: 'Anna', last_name: 'Keller', email: 'anna@example.ch' };
  let replayed;
  const options = { idempotencyKey: run, onAnswer: (headers) => (replayed = headers.get('Idempotency-Replayed')) };
  const first = await kontor.customers.create(input, options);
  assert.equal(replayed, null);
  assert.equal((await kontor.customers.create(input, options)).id, first.id);
  assert.equal(replayed, 'true');
});

test('many calls with a rejected token refresh once', async () => {
  const reported = [];
  const first = await signedIn();
  const { fetch, paths } = recorded();
  const kontor = new Kontor(address, { ...quick, fetch, tokens: { ...first.tokens, accessToken: 'expired' }, onTokens: (tokens) => void reported.push(tokens) });
  const answers = await Promise.all(Array.from({ length: 40 }, () => kontor.users.me()));
  assert.ok(answers.every((me) => me.id === first.tokens.userId));
  assert.equal(paths.filter((path) => path === '/v1/token/refresh').length, 1);
  assert.deepEqual(reported, [kontor.tokens]);
  assert.notEqual(kontor.tokens.refreshToken, first.tokens.refreshToken);
  // For 20 seconds, another client with the same refresh token gets the same tokens.
  const expired = { ...quick, tokens: { ...first.tokens, accessToken: 'expired' } };
  const copied = new Kontor(address, expired);
  await copied.users.me();
  assert.deepEqual([copied.tokens.accessToken, copied.tokens.refreshToken], [kontor.tokens.accessToken, kontor.tokens.refreshToken]);
  // When the next one was used, its use ends the session.
  await kontor.auth.refresh({ refresh_token: kontor.tokens.refreshToken });
  await assert.rejects(new Kontor(address, expired).users.me(), NotSignedIn);
  await assert.rejects(kontor.users.me(), NotSignedIn);
  assert.equal(kontor.tokens.accessToken, undefined);
});

test('a lost answer to a refresh does not end the session', async () => {
  const first = await signedIn();
  const losing = { refreshes: 0, calls: 0 };
  const kontor = new Kontor(address, {
    ...quick,
    tokens: { ...first.tokens, accessToken: 'expired' },
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      losing.calls += 1;
      if (!input.endsWith('/v1/token/refresh') || (losing.refreshes += 1) > 2) return answer;
      await answer.arrayBuffer(); // The service has answered.
      throw new TypeError('the connection was lost');
    },
  });
  const answers = await Promise.all(Array.from({ length: 5 }, () => kontor.users.me()));
  assert.ok(answers.every((me) => me.id === first.tokens.userId));
  assert.equal(losing.refreshes, 3);
});

test('a cancelled call does not lose the new tokens', async () => {
  const first = await signedIn();
  const controller = new AbortController();
  const kontor = new Kontor(address, {
    ...quick,
    tokens: { ...first.tokens, accessToken: 'expired' },
    fetch: (input, init) => {
      if (input.endsWith('/v1/token/refresh')) controller.abort();
      return fetch(input, init);
    },
  });
  await assert.rejects(kontor.users.me({ signal: controller.signal }), { name: 'AbortError' });
  assert.equal((await kontor.users.me()).id, first.tokens.userId);
});

test('a wrong password is rejected; a second factor completes the sign-in', async () => {
  await assert.rejects(new Kontor(address).signIn(`unknown-${run}@example.ch`, 'wrong'), code('auth_m.invalid_credentials'));
  const keyed = new Kontor(address, { ...quick, apiKey });
  const name = `anna.${run}`;
  const registered = await keyed.users.register({ credential_type: 'username', credential_value: name, password: 'seven ducks cross a lake', terms_accepted: true, privacy_policy_accepted: true });
  const admin = await signedIn();
  await admin.users.update(registered.user_id, { status: 'active' });
  await admin.users.roles(registered.user_id, { roles: ['Customer'] });
  const anna = new Kontor(address, quick);
  await anna.signIn(name, 'seven ducks cross a lake');
  const factor = await anna.factors.enrol(anna.tokens.userId, { type: 'totp', password: 'seven ducks cross a lake' });
  const { recovery_codes } = await anna.factors.confirm(anna.tokens.userId, factor.id, { code: totp(factor.totp.secret) });
  const next = new Kontor(address, quick);
  const step = await next.signIn(name, 'seven ducks cross a lake').catch((error) => error);
  assert.ok(step instanceof SecondFactorRequired && step.step.methods.includes('totp'), step);
  await assert.rejects(next.users.me(), NotSignedIn);
  await assert.rejects(step.recoveryCode('wrong'), code('auth_m.invalid_factor'));
  await step.recoveryCode(recovery_codes[0]);
  assert.equal((await next.users.me()).id, registered.user_id);
});

test('each credential goes only where it is needed', async () => {
  const admin = await signedIn();
  const account = await admin.serviceAccounts.create({ name: `back office ${run}`, roles: ['Advisor'] });
  const { token } = await admin.serviceAccounts.createToken(account.id, { name: 'first' });
  const sent = [];
  const kontor = new Kontor(address, {
    token,
    apiKey,
    fetch: (input, init) => {
      sent.push([init.headers.Authorization, init.headers['X-API-Key']]);
      return fetch(input, init);
    },
  });
  await kontor.customers.list();
  await kontor.auth.public();
  await kontor.auth.methods();
  assert.deepEqual(sent, [[`Bearer ${token}`, undefined], [undefined, apiKey], [undefined, undefined]]);
  await assert.rejects(kontor.signIn(user, password), TypeError);
});

test('files are sent and received', async () => {
  const kontor = await signedIn();
  const bill = await readFile(process.env.KONTOR_BILL);
  const read = await kontor.invoices.readQrCode({ base64_file: bill.toString('base64') });
  assert.match(JSON.stringify(read), /"iban":"CH/);
  const avatar = await kontor.profile.avatar.set({ file: new File([bill], 'my "photo".png', { type: 'image/png' }) });
  const picture = await kontor.profile.avatar.get(avatar.url.split('/').pop());
  assert.match(picture.type, /^image\//);
  assert.ok(picture.size > 0);
});

test('a stream continues after cuts without gap or duplicate', async () => {
  const admin = await signedIn();
  const keyed = new Kontor(address, { ...quick, apiKey });
  let cuts = 0;
  const cutting = async (input, init) => {
    const response = await fetch(input, init);
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return response;
    cuts++;
    let left = 200 + Math.floor(Math.random() * 3_000);
    const cut = new TransformStream({
      transform(bytes, controller) {
        controller.enqueue(bytes.subarray(0, left));
        if ((left -= bytes.length) <= 0) controller.error(new Error('connection reset'));
      },
    });
    return new Response(response.body.pipeThrough(cut), response);
  };
  const reader = new Kontor(address, { ...quick, tokens: admin.tokens, fetch: cutting });
  const count = 120;
  const send = (title_key) => keyed.notifications.trigger({ event: 'test', title_key, user_ids: [admin.tokens.userId] });
  // A stream without a position begins with what comes after its "open": what a cut before the first notification hides is lost.
  await send(`${run} before`);
  const after = (await admin.notifications.list({ limit: 1 })).data[0].id;
  const sent = (async () => {
    for (let i = 0; i < count; i++) await send(`${run} ${i}`);
  })();
  const got = [];
  for await (const frame of reader.notifications.stream({ after, signal: AbortSignal.timeout(60_000) })) {
    if (frame.event !== 'message') continue;
    assert.equal(frame.id, frame.data.id);
    if (got.push(frame.data.title) === count) break;
  }
  await sent;
  assert.deepEqual(got, Array.from({ length: count }, (_, i) => `${run} ${i}`));
  assert.ok(cuts >= 5, `${cuts} cuts`);
});

test('the change feed has pages with cursors and a stream', async () => {
  const kontor = await signedIn();
  const { next: after } = await kontor.events.list({ after: 'latest' });
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await kontor.customers.create({ first_name: 'Anna', last_name: 'Keller', email: 'anna@example.ch' })).id);
  const paged = [];
  for await (const event of kontor.events.all({ after, types: 'customers.*', limit: 2 })) if (made.includes(event.rec_id)) paged.push(event.rec_id);
  assert.deepEqual(paged, made);
  const streamed = [];
  for await (const frame of kontor.events.stream({ after, types: 'customers.created' }, { signal: AbortSignal.timeout(60_000) })) {
    if (frame.event === 'open' || frame.event === 'position' || frame.event === 'close') continue;
    if (made.includes(frame.data.rec_id) && streamed.push(frame.data.rec_id) === made.length) break;
  }
  assert.deepEqual(streamed, made);
});

test('a stream ends with its signal, or when the service rejects the caller', async () => {
  const kontor = await signedIn();
  const ended = new AbortController();
  await assert.rejects(async () => {
    for await (const frame of kontor.notifications.stream({ signal: ended.signal })) if (frame.event === 'open') ended.abort();
  }, { name: 'AbortError' });
  await assert.rejects(async () => {
    for await (const _ of new Kontor(address, { token: 'wrong' }).notifications.stream()) assert.fail();
  }, code('common.unauthorized'));
});
