import { api } from './api.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';
import { useLoad } from './load.js';

/** The types of records that rights are given on. */
export const TYPES = ['customers', 'personas', 'payers', 'users', 'credentials', 'sessions', 'chats', 'tasks', 'notifications', 'deliveries',
  'profiles', 'invoices', 'roles', 'grants', 'rate_limits', 'api_keys', 'audit'];
/** The five permissions, as the server names them. */
export const PERMISSIONS = ['create', 'read', 'update', 'delete', 'read_all'];

const BUILT_IN = new Set(['Administrator', 'Advisor', 'Customer', 'Registrant']);

/** A role's name: those that come with Kontor in the user's language, the bank's own as it was given. */
export const roleName = (name) => (BUILT_IN.has(name) ? t(`role.${name}`) : name);

/** What a role is for, likewise. */
export const roleText = (role) => (BUILT_IN.has(role.name) && role.built_in !== false ? t(`role_text.${role.name}`) : role.description);

/** The caller: {me, allowed: Set of "type.permission"}; null until it is known. */
export const caller = store(null);

/** Asks who the caller is and what he may do with each type of record: one request each. */
export async function loadCaller() {
  const checks = TYPES.flatMap((type) => PERMISSIONS.map((permission) => ({ rec_type: type, permission })));
  const [me, answer] = await Promise.all([api.get('/v1/users/me'), api.post('/v1/rbac/check', { checks })]);
  const allowed = new Set();
  answer.results.forEach((result, i) => result.allowed && allowed.add(`${checks[i].rec_type}.${checks[i].permission}`));
  caller.set({ me, allowed });
}

/** Whether the caller holds a permission on a type of record. */
export const may = (type, permission) => caller.get()?.allowed.has(`${type}.${permission}`) ?? false;

/** Whether the caller holds any permission on a type of record. */
export const mayAny = (type) => PERMISSIONS.some((permission) => may(type, permission));

/** The signed-in user's id. */
export const myId = () => caller.get()?.me.id;

/** Draws the component again when the caller's rights become known. */
export const useCaller = () => useStore(caller);

/**
 * Asks what the caller may do with one record.
 * @param {string} type
 * @param {string} id
 * @returns {Record<string, boolean>} permission → allowed; empty until the answer is here
 */
export function useRights(type, id) {
  const { data } = useLoad(async () => {
    if (!id) return {};
    const { results } = await api.post('/v1/rbac/check', { checks: PERMISSIONS.map((permission) => ({ rec_type: type, permission, rec_id: id })) });
    return Object.fromEntries(PERMISSIONS.map((permission, i) => [permission, results[i].allowed]));
  }, [type, id]);
  return data ?? {};
}
