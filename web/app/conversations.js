import { api } from './api.js';
import { newestOnly } from './in_order.js';
import { myId } from './people.js';
import { store } from './store.js';

/** The caller's chats, latest activity first: {chats, more: whether the server has more of them}; null until loaded. */
export const conversations = store(null);

/** Counts what this tab does in threads of the inbox, so that their list is loaded again. */
export const inboxChanges = store(0);
export const inboxChanged = () => inboxChanges.set((n) => n + 1);

let pages = 1; // how many pages of the list are shown
let changes = 0; // counts local changes, so that an answer from before a change does not undo it
let openChat = ''; // the chat whose thread is on the screen

/** Loads the caller's chats, and once more when a message arrives meanwhile. */
export async function loadConversations() {
  const before = changes;
  await loadPages();
  if (changes !== before) await loadPages();
}

const beginLoad = newestOnly();

async function loadPages() {
  const isNewest = beginLoad();
  let { data: chats, next } = await api.page('/v1/chats');
  for (let page = 1; next && page < pages; page++) {
    const more = await api.page(next);
    chats = [...chats, ...more.data];
    next = more.next;
  }
  if (isNewest()) conversations.set({ chats, more: Boolean(next) });
}

/** Loads one more page of the caller's chats. */
export function loadMoreConversations() {
  pages += 1;
  return loadConversations();
}

/** Deletes what is known, before another user signs in. */
export function forgetConversations() {
  pages = 1;
  openChat = '';
  conversations.set(null);
}

/** Says which chat's thread is on the screen; an empty id means none. */
export function setOpenChat(id) {
  openChat = id;
}

/** Whether the user sees the thread of a chat now. */
const isOnScreen = (id) => id === openChat && document.visibilityState === 'visible';

/** Returns a loaded chat, or undefined. */
export const findChat = (id) => conversations.get()?.chats.find((one) => one.id === id);

function change(id, fn) {
  changes += 1;
  conversations.set((was) => was && { ...was, chats: was.chats.map((one) => (one.id === id ? fn(one) : one)) });
}

/**
 * Returns the message that a frame of the stream carries, in the shape of GET /v1/chats/{id}/messages; null when the
 * frame carries none. A truncated message holds only the beginning of the text.
 * @param {{chat?: {chat_id: string, message_id: string, type?: string, text: string, truncated?: boolean,
 *   created_by: string, created_at: string}}} frame
 */
export function messageOf({ chat }) {
  if (!chat?.chat_id || !chat.message_id || typeof chat.text !== 'string') return null;
  const { chat_id: chatId, message_id: id, type = 'text', text: content, created_by: senderId, created_at: createdAt } = chat;
  return { id, chatId, senderId, content, type, createdAt, readBy: [], truncated: chat.truncated === true };
}

/**
 * Puts a new message into the list of chats: its chat moves to the top, and counts as unread unless the user wrote the
 * message or sees the thread.
 * @returns {{listed: boolean, unread: boolean}} listed: false when the chat is not loaded
 */
export function addMessage(message) {
  const unread = message.senderId !== myId() && !isOnScreen(message.chatId);
  const chat = findChat(message.chatId);
  if (!chat) return { listed: false, unread };
  if (chat.lastMessage?.id === message.id) return { listed: true, unread: false }; // A stream may repeat frames.
  const updated = {
    ...chat, lastMessage: message, updatedAt: message.createdAt, unreadCount: chat.unreadCount + (unread ? 1 : 0),
  };
  changes += 1;
  conversations.set((was) => ({ ...was, chats: [updated, ...was.chats.filter((one) => one.id !== chat.id)] }));
  return { listed: true, unread };
}

/**
 * Marks a chat and its notifications as read on the server.
 * @returns {Promise<boolean>} whether the chat may have had unread messages before
 */
export async function markRead(id) {
  const last = findChat(id)?.lastMessage?.id;
  await api.post(`/v1/chats/${id}/read`);
  const had = findChat(id)?.unreadCount !== 0;
  const isSame = findChat(id)?.lastMessage?.id === last || isOnScreen(id); // Otherwise an unread message has arrived.
  change(id, (chat) => (isSame ? { ...chat, unreadCount: 0 } : chat));
  return had;
}

/** Opens the chat of a customer with the bank, a new one if there is none. */
export const writeToBank = () => api.post('/v1/chats/bank');
