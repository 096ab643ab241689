import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, requests, signedIn } from './browser.mjs';

signedIn();
const { connection, onFrame, startStream, stopStream } = await import('../app/stream.js');

/** Answers with a stream whose body comes in the given pieces and then stays open until the request is aborted. */
const stream = (...pieces) => (_, { signal }) => new Response(new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
    signal.addEventListener('abort', () => controller.error(signal.reason));
  },
}), { headers: { 'Content-Type': 'text/event-stream' } });

/** Collects frames until there are n. */
function frames(n) {
  return new Promise((done) => {
    const found = [];
    const end = onFrame((frame) => {
      found.push(frame);
      if (found.length === n) {
        end();
        done(found);
      }
    });
  });
}

test('frames are cut as the event-stream standard says, wherever the pieces end', async () => {
  answerWith(stream('event: open\r\nda', 'ta: {"message":"Connection established"}\r\n\r\n', ': keepalive\n\n',
    'id: n1\nevent: message\ndata: {"id":\ndata:  "n1"}\n\n', 'data: not json\r\r'));
  const three = frames(3);
  startStream();
  const [open, message, plain] = await three;
  const state = connection.get();
  stopStream();
  assert.deepEqual(open, { event: 'open', data: { message: 'Connection established' }, again: false });
  assert.deepEqual(message, { event: 'message', id: 'n1', data: { id: 'n1' } });
  assert.deepEqual(plain, { event: 'message', data: 'not json' });
  assert.deepEqual(state, { state: 'live' });
  assert.equal(requests[0].init.headers.Authorization, 'Bearer first');
  assert.equal(requests[0].init.headers['Last-Event-ID'], undefined);
});
