import { api } from './api.js';
import { may, myId } from './access.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';
import { shortId } from './format.js';

// The API keeps no name with a user. What it has are credentials, the names of assignees and what a chat's metadata
// says; the first that the caller may read is used.
const names = store({});
const asked = new Set();

/** Remembers a user's name that came along with other data. */
export function learn(userId, name) {
  if (userId && name && names.get()[userId] !== name) names.set((was) => ({ ...was, [userId]: name }));
}

/** Learns the names that stand beside the caller's tasks: what somebody without rights on credentials can know. */
async function askTasks() {
  const { data } = await api.get('/v1/tasks', { limit: 100 });
  for (const task of data) for (const one of task.assignees) learn(one.user_id, one.name);
}

async function ask(userId) {
  if (asked.has(userId)) return;
  asked.add(userId);
  if (!may('credentials', 'read') && !may('credentials', 'read_all')) {
    if (asked.size === 1) askTasks().catch(() => {});
    return;
  }
  try {
    const { data } = await api.get(`/v1/users/${userId}/credentials`);
    const best = data.find((one) => one.type === 'email') ?? data[0];
    learn(userId, best?.value);
  } catch {
    // Without the right to read it the short id has to do.
  }
}

/** A user's name for the eye, as far as the caller may know it. */
export function nameOf(userId) {
  if (!userId) return '';
  const known = names.get()[userId];
  if (known) return known;
  ask(userId);
  if (userId === myId()) return session.get()?.login ?? t('people.me');
  return t('people.user', { id: shortId(userId) });
}

/** Draws the component again when a name becomes known. */
export const usePeople = () => useStore(names);

/** Two letters for a person's picture. */
export function initials(name) {
  const words = (name ?? '').replace(/@.*/, '').split(/[\s._-]+/).filter(Boolean);
  return ((words[0]?.[0] ?? '?') + (words[1]?.[0] ?? '')).toUpperCase();
}

/** The users somebody may choose from: {id, name}, as far as the caller may list them. */
export async function listPeople() {
  const { data } = await api.get('/v1/users', { limit: 100, 'search.status': 'active' });
  await Promise.all(data.map((user) => ask(user.id)));
  return data.map((user) => ({ id: user.id, name: nameOf(user.id) }));
}
