import { api } from './api.js';
import { may, myId } from './access.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';

// The API keeps no name with a user. What it has are the names of assignees, those in a chat's metadata, and
// credentials: what people are called comes first, what they sign in with second.
const people = store({ names: {}, logins: {} });
const asked = new Set();

function note(kind, id, text) {
  if (id && text && people.get()[kind][id] !== text) people.set((was) => ({ ...was, [kind]: { ...was[kind], [id]: text } }));
}

/** Remembers a user's name that came along with other data. */
export const learn = (userId, name) => note('names', userId, name);

/** Remembers the names that stand in chats. */
export function learnFromChats(chats) {
  for (const chat of chats) for (const [id, name] of Object.entries(chat.metadata?.names ?? {})) learn(id, String(name));
}

/** Remembers the names that stand beside tasks. */
export function learnFromTasks(tasks) {
  for (const task of tasks) for (const one of task.assignees ?? []) learn(one.user_id, one.name);
}

let around = null;

/** Learns once what can be known without rights on credentials: who is named in the caller's chats and tasks. */
function lookAround() {
  around ??= Promise.allSettled([api.get('/v1/chats').then(learnFromChats), api.get('/v1/tasks', { limit: 100 }).then(({ data }) => learnFromTasks(data))]);
  return around;
}

async function ask(userId) {
  if (asked.has(userId)) return;
  asked.add(userId);
  lookAround();
  if (userId !== myId() && !may('credentials', 'read') && !may('credentials', 'read_all')) return;
  try {
    const { data } = await api.get(`/v1/users/${userId}/credentials`);
    note('logins', userId, (data.find((one) => one.type === 'email') ?? data[0])?.value);
  } catch {
    // Without the right to read it there is only what was found around.
  }
}

/** What a user signs in with, as far as the caller may know it. */
export function loginOf(userId) {
  if (userId) ask(userId);
  return people.get().logins[userId] ?? (userId === myId() ? session.get()?.login : '') ?? '';
}

/** A user's name for the eye, as far as the caller may know it. */
export function nameOf(userId) {
  if (!userId) return '';
  return people.get().names[userId] || loginOf(userId) || t(userId === myId() ? 'people.me' : 'people.unknown');
}

/** What a chat is called: its own title, else the others who take part in it. */
export function chatName(chat) {
  if (chat.metadata?.title) return chat.metadata.title;
  const others = chat.participants.filter((id) => id !== myId());
  return others.map((id) => chat.metadata?.names?.[id] ?? nameOf(id)).join(', ') || t('chats.alone');
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
  await Promise.all([lookAround(), ...data.map((user) => ask(user.id))]);
  const { names } = people.get();
  const around = Object.keys(names).filter((id) => !data.some((user) => user.id === id)); // Named in chats and tasks, but not to be listed.
  return [...data.map((user) => user.id), ...around].map((id) => ({ id, name: nameOf(id), login: loginOf(id) }));
}

/** Forgets everybody, before somebody else signs in. */
export function forgetPeople() {
  people.set({ names: {}, logins: {} });
  picture.set(null);
  asked.clear();
  around = null;
}
