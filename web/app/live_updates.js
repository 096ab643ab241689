import { useEffect, useRef } from './lib.js';
import { api } from './api.js';
import { addMessage, conversations, findChat, forgetConversations, loadConversations, markRead, messageOf } from './conversations.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { broadcast, onFrame, startStream, stopStream } from './stream.js';

/** How much is unread: {notifications, chats}; null until it is loaded. */
export const unread = store({ notifications: null, chats: null });

conversations.watch((loaded) => {
  const chats = loaded?.chats.reduce((sum, chat) => sum + chat.unreadCount, 0) ?? null;
  unread.set((was) => ({ ...was, chats }));
});

async function countNotifications() {
  const { unread_count: notifications } = await api.get('/v1/notifications/unread-count');
  if (session.get()) unread.set((was) => ({ ...was, notifications }));
}

/** Loads the unread counts and the list of chats again. */
export const countUnread = () => Promise.allSettled([countNotifications(), loadConversations()]);

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

/** Applies a notification to the unread counts. A chat message needs no request: its frame carries all that is shown. */
function countFrame(item) {
  const message = messageOf(item);
  if (!message) return item.rec_type === 'chats' ? countUnreadSoon() : countNotificationsSoon();
  const { listed, unread: isUnread } = addMessage(message);
  if (!listed) return countUnreadSoon();
  if (isUnread) unread.set((was) => ({ ...was, notifications: was.notifications === null ? null : was.notifications + 1 }));
  return undefined;
}

function onLiveFrame({ event, data }) {
  if (event === 'message') countFrame(data);
  else if (event === 'reset' || event === 'open') countUnreadSoon();
  else if (event === 'chat_read' && findChat(data.chat_id)?.unreadCount > 0) countUnreadSoon(); // from another tab
}

let stopListening = null;

/** Opens the stream and keeps the unread counts current until the user signs out. */
export function startLiveUpdates() {
  stopLiveUpdates();
  stopListening = onFrame(onLiveFrame);
  startStream();
  countUnread();
}

/** Stops the stream and forgets the unread counts. */
export function stopLiveUpdates() {
  stopListening?.();
  stopListening = null;
  countUnreadSoon.cancel();
  countNotificationsSoon.cancel();
  stopStream();
  forgetConversations();
  unread.set({ notifications: null, chats: null });
}

/**
 * Calls fn with each notification that arrives while the component is shown. It calls fn with null when the stream may
 * have missed some (it was reset or opened again), so that lists are loaded again.
 * @param {(notification: any|null) => void} fn
 */
export function useNotifications(fn) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => onFrame((frame) => {
    if (frame.event === 'message') latest.current(frame.data);
    else if (frame.event === 'reset' || frame.again) latest.current(null);
  }), []);
}

/** The unread counts; the component renders again when they change. */
export const useUnread = () => useStore(unread);
