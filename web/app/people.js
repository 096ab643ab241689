import { session } from './session.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';

// The names of users from the API: {display_name, user_name, staff, service} by user id. Every answer and every frame that names
// users carries a member "people"; the API layer and the stream pass it to learnPeople. Nothing else is a source of
// names: metadata of chats and tasks is written by users and must not name anybody.
const people = store({});

/** The signed-in user's id. */
export const myId = () => session.get()?.user_id;

const same = (a, b) => a && a.display_name === b.display_name && a.user_name === b.user_name && a.staff === b.staff
  && a.service === b.service;

/**
 * Remembers what an answer of the API says about users.
 * @param {any} answer an object with a member "people", or an array of such objects; anything else is ignored
 */
export function learnPeople(answer) {
  if (!answer || typeof answer !== 'object') return;
  const found = {};
  for (const one of Array.isArray(answer) ? answer : [answer]) {
    for (const [id, person] of Object.entries(one?.people ?? {})) {
      if (person && typeof person === 'object' && !same(people.get()[id], person)) found[id] = person;
    }
  }
  if (Object.keys(found).length) people.set((was) => ({ ...was, ...found }));
}

/** Remembers the display names of user records, which may come without a member "people". */
export function learnUsers(users) {
  for (const { id, display_name: name } of users) {
    if (typeof name === 'string' && name !== (people.get()[id]?.display_name ?? '')) changeDisplayName(id, name);
  }
}

/** Removes everything that is known about people, before another user signs in. */
export const forgetPeople = () => people.set({});

const isText = (value) => typeof value === 'string' && value.trim() !== '';

/** The name that a user signs in with; empty unless the caller is staff or the user is the caller. */
export function signInNameOf(id) {
  const known = people.get()[id]?.user_name;
  if (isText(known)) return known;
  return id && id === myId() ? session.get()?.login ?? '' : '';
}

/** Whether a user is a service account. */
export const isService = (id) => people.get()[id]?.service === true;

/** Whether a user belongs to the bank's staff. */
export const isStaff = (id) => people.get()[id]?.staff === true;

/** Whether the API said what to call a user. */
export const hasName = (id) => isText(people.get()[id]?.display_name) || signInNameOf(id) !== '';

/** A user's name for display: the display name, else the sign-in name, else a placeholder with the end of the id. */
export function nameOf(id) {
  if (!id) return '';
  const chosen = people.get()[id]?.display_name;
  if (isText(chosen)) return chosen.trim();
  return signInNameOf(id) || t('people.unnamed', { id: String(id).slice(-8) });
}

/** Renders the component again when something about people becomes known. */
export const usePeople = () => useStore(people);

const letters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const graphemes = (text) => Array.from(letters.segment(text.normalize()), ({ segment }) => segment);

/** One or two letters for the picture of a person. A name without letters and digits is represented by its first character. */
export function initials(name) {
  const text = (name ?? '').replace(/@.*/, '').trim();
  const first = (word) => graphemes(word).find((one) => /^[\p{L}\p{N}]/u.test(one));
  const found = text.split(/[\s,._-]+/).map(first).filter(Boolean);
  return found.slice(0, 2).join('').toUpperCase() || graphemes(text)[0] || '?';
}

/** Remembers a display name that has just been saved. */
export const changeDisplayName = (id, name) => people.set((was) => ({ ...was, [id]: { ...was[id], display_name: name } }));
