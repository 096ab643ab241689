import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { answerWith, json, requests, signedIn } from './browser.mjs';

signedIn();
const { caller } = await import('../app/access.js');
const { conversations, messageOf, setOpenChat } = await import('../app/conversations.js');
const { countUnread, markChatRead, startLiveUpdates, stopLiveUpdates, unread } = await import('../app/live_updates.js');
const { nameOf } = await import('../app/people.js');
const { connection, onFrame } = await import('../app/stream.js');

caller.set({
  me: { id: 'u1', roles: ['Advisor'] },
  allowed: new Set(['GET /v1/chats', 'GET /v1/notifications/unread-count', 'GET /v1/notifications/sse']),
});

const anna = '01980000-0000-7000-8000-0000000000a1';
const chat = (id, unreadCount) => ({ id, participants: ['u1', anna], unreadCount, updatedAt: '2026-01-01T00:00:00.000Z' });

/** A frame about a message, as the server writes it. */
const frameOf = (changes = {}) => ({
  id: 'n1', event: 'message_received', rec_type: 'chats', read: false,
  chat: {
    chat_id: 'c2', message_id: 'm1', type: 'text', text: 'Good morning', created_by: anna,
    created_at: '2026-01-31T08:15:30.123Z', ...changes,
  },
  people: { [anna]: { display_name: 'Anna Keller', staff: true } },
});

let sendFrame; // writes a frame to the open stream

/** Answers the requests of a signed-in console; the stream stays open. */
function answer(url, init) {
  if (url === '/v1/notifications/unread-count') return json({ unread_count: 4 });
  if (url === '/v1/chats') return json([chat('c1', 1), chat('c2', 2)]);
  if (url.endsWith('/read')) return json({});
  return new Response(new ReadableStream({
    start(controller) {
      sendFrame = (data) => controller.enqueue(new TextEncoder().encode(`id: ${data.id}\ndata: ${JSON.stringify(data)}\n\n`));
      init.signal.addEventListener('abort', () => controller.error(init.signal.reason));
    },
  }), { headers: { 'Content-Type': 'text/event-stream' } });
}

/** Resolves once a store meets a condition. */
const until = (source, condition) => new Promise((resolve) => {
  if (condition(source.get())) return resolve();
  const stop = source.watch((value) => {
    if (condition(value)) resolve(stop());
  });
  return undefined;
});

const SOON_MS = 150; // Several reasons to count again in a row are one.

/** Starts the live updates and waits for the first counts. No time passes by itself. */
async function start() {
  mock.timers.enable({ apis: ['setTimeout'] });
  answerWith(...Array(20).fill(answer));
  startLiveUpdates();
  await until(unread, (now) => now.notifications !== null && now.chats !== null);
  await until(connection, ({ state }) => state === 'live');
  requests.length = 0;
}

afterEach(() => {
  stopLiveUpdates();
  mock.timers.reset();
  setOpenChat('');
  sendFrame = undefined;
});

test('a message of another chat is counted and shown without a request', async () => {
  await start();
  sendFrame(frameOf());
  await until(unread, (now) => now.notifications === 5);
  assert.deepEqual(unread.get(), { notifications: 5, chats: 4 });
  const { chats } = conversations.get();
  assert.deepEqual(chats.map((one) => [one.id, one.unreadCount]), [['c2', 3], ['c1', 1]]);
  assert.equal(chats[0].lastMessage.content, 'Good morning');
  assert.equal(nameOf(anna), 'Anna Keller');
  assert.deepEqual(requests, []);
});

test('a message of the open chat is not unread; marking it as read is the only request', async () => {
  await start();
  setOpenChat('c2');
  await markChatRead('c2');
  requests.length = 0;
  sendFrame(frameOf());
  await until(conversations, (now) => now.chats[0].lastMessage);
  assert.equal(unread.get().chats, 1);
  await markChatRead('c2');
  assert.deepEqual(requests.map(({ url, init }) => `${init.method} ${url}`), ['POST /v1/chats/c2/read']);
});

test('the same message twice, and a message of the user, count once or not at all', async () => {
  await start();
  sendFrame(frameOf());
  sendFrame(frameOf());
  sendFrame({ ...frameOf({ message_id: 'm2', created_by: 'u1', text: 'Hello' }), id: 'n2' });
  await until(conversations, (now) => now.chats[0].lastMessage?.content === 'Hello');
  assert.equal(conversations.get().chats[0].unreadCount, 3);
  assert.equal(unread.get().notifications, 5);
});

test('a frame without a message loads the counts again', async () => {
  await start();
  const arrived = new Promise((resolve) => onFrame(resolve)); // after the live updates
  sendFrame({ id: 'n3', event: 'message_received', rec_type: 'chats', read: false });
  await arrived;
  mock.timers.tick(SOON_MS);
  await until(conversations, () => requests.length === 2);
  assert.deepEqual(requests.map(({ url }) => url).sort(), ['/v1/chats', '/v1/notifications/unread-count']);
});

test('an answer that arrives after a later one is ignored', async () => {
  await start();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const counts = (n) => (url) => (url === '/v1/chats' ? json([chat('c1', n)]) : json({ unread_count: n }));
  answerWith(...Array(2).fill((url) => held.then(() => counts(7)(url))), ...Array(2).fill(counts(3)));
  const older = countUnread();
  await countUnread();
  release();
  await older;
  assert.deepEqual(unread.get(), { notifications: 3, chats: 3 });
});

test('marking a chat as read does not hide a message that arrives meanwhile', async () => {
  await start();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  answerWith(() => held.then(() => json({})));
  const marked = markChatRead('c2');
  sendFrame(frameOf());
  await until(conversations, (now) => now.chats[0].id === 'c2');
  release();
  await marked;
  assert.equal(conversations.get().chats[0].unreadCount, 3);
});

test('messageOf accepts complete frames only, and keeps that a text is truncated', () => {
  assert.deepEqual(messageOf(frameOf()), {
    id: 'm1', chatId: 'c2', senderId: anna, content: 'Good morning', type: 'text', createdAt: '2026-01-31T08:15:30.123Z', readBy: [],
    truncated: false,
  });
  assert.equal(messageOf(frameOf({ truncated: true })).truncated, true);
  assert.equal(messageOf({}), null);
  assert.equal(messageOf(frameOf({ text: undefined })), null);
  assert.equal(messageOf(frameOf({ chat_id: '' })), null);
});
