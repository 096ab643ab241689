// The client against services that do not behave.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ConnectionFailed, Kontor, KontorError, TimedOut, UnexpectedAnswer } from 'kontor-client';

import { serve } from './harness.mjs';

const options = { token: 'secret-token', apiKey: 'secret-key', firstWait: 1, maxWait: 1 };

async function firstOf(stream) {
  for await (const frame of stream) return frame;
  return undefined;
}

test('redirects are not followed', async (t) => {
  let arrived = 0;
  const other = await serve(t, (_, response) => {
    arrived++;
    response.end();
  });
  for (const status of [301, 302, 303, 307, 308]) {
    const kontor = new Kontor(await serve(t, (_, response) => response.writeHead(status, { Location: other }).end()), options);
    await assert.rejects(kontor.customers.get('1'), UnexpectedAnswer);
    await assert.rejects(kontor.signIn('anna', 'password'), UnexpectedAnswer);
    await assert.rejects(firstOf(kontor.notifications.stream()), UnexpectedAnswer);
  }
  assert.equal(arrived, 0);
});

test('answers are bounded', async (t) => {
  const endless = (head, status, type) => (_, response) => {
    response.writeHead(status, { 'Content-Type': type });
    response.write(head);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  };
  const limited = { ...options, maxAnswer: 1_000_000 };
  const kontor = new Kontor(await serve(t, endless('{"id":"', 200, 'application/json')), limited);
  await assert.rejects(kontor.customers.get('1'), /larger than 1000000 bytes/);
  const failing = new Kontor(await serve(t, endless('{"message":"', 500, 'application/json')), limited);
  await assert.rejects(failing.customers.get('1'), (error) => error instanceof KontorError && error.status === 500 && error.message.length < 1_000);
  const streaming = new Kontor(await serve(t, endless('data: ', 200, 'text/event-stream')), limited);
  await assert.rejects(firstOf(streaming.notifications.stream()), /larger than/);
});

test('other answers are errors', async (t) => {
  for (const [type, body] of [['text/html', '<html>'], ['application/json', '{"id":'], ['application/json', ''], ['application/json', Buffer.from([0xff, 0x22])], ['', '{}']]) {
    const kontor = new Kontor(await serve(t, (_, response) => response.writeHead(200, type ? { 'Content-Type': type } : {}).end(body)), options);
    await assert.rejects(kontor.customers.get('1'), UnexpectedAnswer, `${type} ${body}`);
  }
  for (const body of ['<html>secrets', '{}', '[1]', 'null', '{"message":"x","code":7}', '']) {
    const kontor = new Kontor(await serve(t, (_, response) => response.writeHead(403, { 'Content-Type': 'application/json' }).end(body)), options);
    await assert.rejects(kontor.customers.get('1'), (error) => error instanceof KontorError && error.status === 403 && error.code === undefined && !error.message.includes('secrets'));
  }
});

test('lists end', async (t) => {
  const kontor = new Kontor(
    await serve(t, (request, response) => {
      if (request.url.startsWith('/v1/chats')) {
        response.writeHead(200, { 'Content-Type': 'application/json', Link: '<https://evil.example/v1/chats?before=same>; rel="next"' }).end('[{"id":"1"}]');
      } else response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":[],"has_more":true}');
    }),
    options,
  );
  for (const list of [kontor.customers.all(), kontor.chats.all()]) {
    await assert.rejects(async () => {
      let rows = 0;
      for await (const _ of list) assert.ok(++rows < 5);
    }, UnexpectedAnswer);
  }
});

test('slow answers time out, and callers can leave', async (t) => {
  let requests = 0;
  const slow = await serve(t, (_, response) => {
    requests++;
    response.writeHead(200, { 'Content-Type': 'application/json' }).write('{');
  });
  const kontor = new Kontor(slow, { ...options, timeout: 50 });
  await assert.rejects(kontor.customers.get('1'), TimedOut);
  assert.ok(requests <= 1, `${requests} requests`); // 0: a busy machine was too slow to accept it
  const patient = new Kontor(slow, options);
  await assert.rejects(patient.customers.get('1', { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
  await assert.rejects(patient.customers.get('1', { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a silent stream reconnects after its last frame', async (t) => {
  const resumed = [];
  const kontor = new Kontor(
    await serve(t, (request, response) => {
      resumed.push(request.headers['last-event-id']);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('id: 7\r\nevent: message\r\ndata: {"id":\r\ndata: "7"}\r\n\r\n: comment\n\nevent: news\rdata: 1\r\rdata: cut off');
    }),
    { ...options, streamIdle: 30 },
  );
  const frames = [];
  for await (const frame of kontor.notifications.stream({ after: '5' })) if (frames.push(`${frame.event} ${frame.id} ${JSON.stringify(frame.data)}`) === 5) break;
  assert.deepEqual(frames, ['message 7 {"id":"7"}', 'news  1', 'message 7 {"id":"7"}', 'news  1', 'message 7 {"id":"7"}']);
  assert.deepEqual(resumed, ['5', '7', '7']);
});

test('calls are repeated when that is safe', async (t) => {
  const problem = (code) => JSON.stringify({ status: 503, message: 'x', code, class: 'temporary', retryable: true });
  const health = JSON.stringify({ overall_status: 'unhealthy', message: 'x', timestamp: '2026-01-31T08:15:30.123Z' });
  const get = (kontor) => kontor.customers.get('1');
  const create = (kontor) => kontor.customers.create({ last_name: 'x', email: 'x' });
  const update = (kontor) => kontor.customers.update('1', {});
  for (const [name, call, status, body, retry, want] of [
    ['a busy service', update, 503, problem('common.unavailable'), '0', 3],
    ['a service that shuts down', update, 503, health, '0', 3],
    ['a rate limit', update, 429, problem('rate_limits_m.exceeded'), '0', 3],
    ['a long rate limit', get, 429, problem('rate_limits_m.exceeded'), '31', 1],
    ['a lockout', (kontor) => kontor.auth.signIn({ user_id: 'a', password: 'b' }), 429, problem('auth_m.cooling_off'), '0', 1],
    ['an unknown outcome of a creation', create, 503, problem('common.outcome_unknown'), '', 3],
    ['an unknown outcome of a change', update, 503, problem('common.outcome_unknown'), '', 1],
    ['a broken connection of a creation', create, 0, '', '', 3],
    ['a broken connection of a change', update, 0, '', '', 1],
    ['a proxy without a service, read', get, 502, '<html>', '', 3],
    ['a proxy without a service, change', update, 502, '<html>', '', 1],
    ['an error of the caller', get, 404, problem('customers.customer_not_found'), '', 1],
  ]) {
    const keys = [];
    const kontor = new Kontor(
      await serve(t, (request, response) => {
        keys.push(request.headers['idempotency-key']);
        if (status === 0) request.socket.destroy();
        else response.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': retry }).end(body);
      }),
      options,
    );
    await assert.rejects(call(kontor), status === 0 ? ConnectionFailed : KontorError, name);
    assert.equal(keys.length, want, name);
    assert.equal(new Set(keys).size, 1, name);
  }
});

test('addresses are checked', () => {
  for (const address of ['', 'bank.example', 'ftp://bank.example', 'https://anna:secret@bank.example', 'https://bank.example/?a=b', 'https://bank.example/#x']) {
    assert.throws(() => new Kontor(address), TypeError, address);
  }
});
