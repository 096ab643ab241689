import { useEffect, useRef } from './lib.js';
import { api } from './api.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { onFrame, startStream, stopStream } from './stream.js';

/** What is unread: {notifications, chats}; null until it is known. */
export const unread = store({ notifications: null, chats: null });

/** The caller's chats as they were when the unread were last counted; null until then. */
export const conversations = store(null);

/** Counts again what is unread. */
export async function countUnread() {
  const [inbox, chats] = await Promise.allSettled([api.get('/v1/notifications/unread-count'), api.get('/v1/chats')]);
  if (!session.get()) return;
  if (chats.status === 'fulfilled') {
    conversations.set(chats.value);
  }
  unread.set((was) => ({
    notifications: inbox.status === 'fulfilled' ? inbox.value.unread_count : was.notifications,
    chats: chats.status === 'fulfilled' ? chats.value.reduce((sum, chat) => sum + chat.unreadCount, 0) : was.chats,
  }));
}

let settle;

/** Counts again soon; many calls in a row count once. */
export function countUnreadSoon() {
  clearTimeout(settle);
  settle = setTimeout(countUnread, 150);
}

let detach = null;

/** Starts everything that goes on by itself while somebody is signed in. */
export function startLive() {
  stopLive();
  detach = onFrame((frame) => {
    if (frame.event === 'message' || frame.event === 'reset' || frame.event === 'open') countUnreadSoon();
  });
  startStream();
  countUnread();
}

/** Stops it when the user signs out. */
export function stopLive() {
  detach?.();
  detach = null;
  clearTimeout(settle);
  stopStream();
  unread.set({ notifications: null, chats: null });
  conversations.set(null);
}

/**
 * Calls fn with each notification that arrives while the component is shown, and with null when the stream may have
 * missed some (it was opened anew or reset), so that lists are loaded again.
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

/** The unread counts, drawn again when they change. */
export const useUnread = () => useStore(unread);
