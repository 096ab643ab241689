import { api } from './api.js';
import { may, myId } from './access.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';

// The API keeps no name with a user: what it has are credentials, and the names that administrators give to API keys. Names
// in the metadata of chats and beside tasks are the words of whoever wrote them. They stay in their chat or task, where
// ui/person.js marks them; nothing here may learn from them.
const people = store({ keys: {}, logins: {} });
const asked = new Set();

function note(kind, id, text) {
  if (id && text && people.get()[kind][id] !== text) people.set((was) => ({ ...was, [kind]: { ...was[kind], [id]: text } }));
}

/** Remembers what an API key is called, as the server lists it. */
export const learnKey = (keyId, name) => note('keys', keyId, name);

async function ask(userId) {
  if (asked.has(userId)) return;
  asked.add(userId);
  if (userId !== myId() && !may('credentials', 'read') && !may('credentials', 'read_all')) return;
  try {
    const { data } = await api.get(`/v1/users/${userId}/credentials`);
    note('logins', userId, (data.find((one) => one.type === 'email') ?? data[0])?.value);
  } catch {
    // Without the right to read it the user stays unnamed.
  }
}

/** What a user signs in with, as far as the caller may know it. */
export function loginOf(userId) {
  if (userId) ask(userId);
  return people.get().logins[userId] ?? (userId === myId() ? session.get()?.login : '') ?? '';
}

/** Whether there is anything to call a user by. */
export const isKnown = (userId) => Boolean(people.get().keys[userId] || loginOf(userId));

/** What a user is called wherever it matters who it is: what they sign in with, never what somebody else calls them. */
export function nameOf(userId) {
  if (!userId) return '';
  return people.get().keys[userId] || loginOf(userId) || t(userId === myId() ? 'people.me' : 'people.unknown');
}

const LONGEST = 80; // characters of a name or title that somebody gave

/** Words from metadata as one short line, empty for whatever is no text. */
export const shortened = (text) => (typeof text === 'string' ? [...text.trim()].slice(0, LONGEST).join('') : '');

/** The name that the creator of a chat gave to a participant, empty for none. */
export const namedIn = (chat, userId) => (Object.hasOwn(chat.metadata?.names ?? {}, userId) ? shortened(chat.metadata.names[userId]) : '');

/** The participants of a chat but oneself. */
export const othersIn = (chat) => chat.participants.filter((id) => id !== myId());

/** A chat outside of its own screen: by what its participants sign in with, empty when nothing of it is known. */
export function chatLabel(chat) {
  const others = othersIn(chat);
  return others.every(isKnown) ? others.map(nameOf).join(', ') || t('chats.alone') : '';
}

/** Draws the component again when a name becomes known. */
export const usePeople = () => useStore(people);

/** The address of the caller's own picture, null where there is none. */
export const picture = store(null);

/** Loads the caller's picture. */
export const loadPicture = async () => picture.set((await api.get('/v1/profile')).avatar?.thumbnail_url ?? null);

/** Two letters for a person's picture. */
export function initials(name) {
  const words = (name ?? '').replace(/@.*/, '').split(/[\s,._-]+/).filter(Boolean);
  return ((words[0]?.[0] ?? '?') + (words[1]?.[0] ?? '')).toUpperCase();
}

/** The users somebody may choose from: {id, name, login}, as far as the caller may list them. */
export async function listPeople() {
  const { data } = await api.get('/v1/users', { limit: 100, 'search.status': 'active' });
  await Promise.all(data.map((user) => ask(user.id)));
  return data.map(({ id }) => ({ id, name: nameOf(id), login: loginOf(id) }));
}

/** Forgets everybody, before somebody else signs in. */
export function forgetPeople() {
  people.set({ keys: {}, logins: {} });
  picture.set(null);
  asked.clear();
}
