import { useEffect, useRef } from './lib.js';
import { CALL, mayCall } from './access.js';
import { api } from './api.js';
import { addMessage, conversations, findChat, forgetConversations, loadConversations, markRead, messageOf } from './conversations.js';
import { newestOnly } from './in_order.js';
import { store, useStore } from './store.js';
import { broadcast, connection, onFrame, startStream, stopStream } from './stream.js';

/** How much is unread: {notifications, chats}; null until it is loaded. */
export const unread = store({ notifications: null, chats: null });

conversations.watch((loaded) => {
  const chats = loaded?.chats.reduce((sum, chat) => sum + chat.unreadCount, 0) ?? null;
  unread.set((was) => ({ ...was, chats }));
});

const beginCount = newestOnly();

async function countNotifications() {
  if (!mayCall(CALL.unread)) return;
  const isNewest = beginCount();
  const { unread_count: notifications } = await api.get('/v1/notifications/unread-count');
  if (isNewest()) unread.set((was) => ({ ...was, notifications }));
}

const loadChats = async () => mayCall('GET /v1/chats') && loadConversations();

/** Loads the unread counts and the list of chats again. */
export const countUnread = () => Promise.allSettled([countNotifications(), loadChats()]);

const STREAM_MS = 1500; // how long the first load waits for the stream

/** Waits until the stream is open, or does not open soon; returns whether it is. */
function streamOpen() {
  return new Promise((resolve) => {
    const isLive = () => connection.get().state === 'live';
    const end = () => {
      clearTimeout(timer);
      stop();
      resolve(isLive());
    };
    const timer = setTimeout(end, STREAM_MS);
    const stop = connection.watch(() => isLive() && end());
    if (isLive()) end();
  });
}

let first = null; // the first load since the sign-in
let late = false; // it did not wait for the stream, which therefore may have missed something
let opened = false; // the stream has sent its first frame since the sign-in

/**
 * Loads the unread counts and the list of chats for the first time, once: after the stream is open, so that nothing is missed between
 * both and nothing is loaded twice.
 */
export function firstLoad() {
  first ??= streamOpen().then((isOpen) => {
    late = !isOpen;
    return Promise.all([countNotifications().catch(() => {}), loadChats()]);
  }).catch((error) => {
    first = null;
    throw error;
  });
  return first;
}

/** Makes a function that calls fn once for many calls in a row. */
function debounced(fn) {
  let timer;
  const call = () => {
    clearTimeout(timer);
    timer = setTimeout(fn, 150);
  };
  return Object.assign(call, { cancel: () => clearTimeout(timer) });
}

/** Does the same as countUnread, soon and once for many calls. */
export const countUnreadSoon = debounced(countUnread);

/** Loads the number of unread notifications again, soon and once for many calls. */
export const countNotificationsSoon = debounced(() => countNotifications().catch(() => {}));

/** Marks a chat as read here and in the other tabs. */
export async function markChatRead(id) {
  if (await markRead(id)) countNotificationsSoon();
  broadcast({ event: 'chat_read', data: { chat_id: id } });
}

/**
 * Marks notifications as read, and counts the unread ones again here and in the other tabs.
 * @param {() => Promise<any>} request
 */
export async function markNotificationsRead(request) {
  const answer = await request();
  countNotificationsSoon();
  broadcast({ event: 'notifications_read' });
  return answer;
}

/** Applies a notification to the unread counts. A chat message needs no request: its frame carries all that is shown. */
function countFrame(item) {
  const message = messageOf(item);
  if (!message) return item.rec_type === 'chats' ? countUnreadSoon() : countNotificationsSoon();
  const { listed, unread: isUnread } = addMessage(message);
  if (!listed) return countUnreadSoon();
  if (isUnread) unread.set((was) => ({ ...was, notifications: was.notifications === null ? null : was.notifications + 1 }));
  return undefined;
}

function onLiveFrame({ event, data, again }) {
  if (event === 'message') countFrame(data);
  else if (event === 'open') {
    if (again || opened || late) countUnreadSoon();
    opened = true;
  } else if (event === 'reset') countUnreadSoon();
  else if (event === 'notifications_read') countNotificationsSoon(); // in another tab
  else if (event === 'chat_read' && findChat(data.chat_id)?.unreadCount > 0) countUnreadSoon(); // from another tab
}

let stopListening = null;

/** Opens the stream and keeps the unread counts current until the user signs out. */
export function startLiveUpdates() {
  stopLiveUpdates();
  stopListening = onFrame(onLiveFrame);
  if (mayCall(CALL.stream)) startStream();
  firstLoad().catch(() => {});
}

/** Stops the stream and forgets the unread counts. */
export function stopLiveUpdates() {
  stopListening?.();
  stopListening = null;
  countUnreadSoon.cancel();
  countNotificationsSoon.cancel();
  stopStream();
  first = null;
  late = false;
  opened = false;
  forgetConversations();
  unread.set({ notifications: null, chats: null });
}

/**
 * Calls fn with each notification that arrives while the component is shown. It calls fn with null when the stream may
 * have missed some (it was reset or opened again), or another tab has marked some as read, so that lists are loaded again.
 * @param {(notification: any|null) => void} fn
 */
export function useNotifications(fn) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => onFrame((frame) => {
    if (frame.event === 'message') latest.current(frame.data);
    else if (frame.event === 'reset' || frame.event === 'notifications_read' || frame.again) latest.current(null);
  }), []);
}

/** The unread counts; the component renders again when they change. */
export const useUnread = () => useStore(unread);
