import { api, ApiError } from './api.js';
import { learnUsers } from './people.js';
import { session } from './session.js';
import { store, useStore } from './store.js';
import { t } from './i18n.js';
import { rows } from './screen_rows.js';
import { useLoad } from './load.js';

export { myId } from './people.js';

/** The record types that permissions are about. */
export const TYPES = [
  'customers', 'personas', 'payers', 'users', 'credentials', 'sessions', 'chats', 'tasks', 'notifications', 'deliveries',
  'profiles', 'invoices', 'roles', 'grants', 'rate_limits', 'api_keys', 'audit', 'factors', 'identities',
  'service_accounts', 'webhooks',
];

/** The five permissions, as the server names them. */
export const PERMISSIONS = ['create', 'read', 'update', 'delete', 'read_all'];

/** The endpoints of parts of screens. */
export const CALL = {
  customerFiles: 'GET /v1/customers/{id}/kyc/files', customerTasks: 'GET /v1/customers/{customer_id}/tasks', events: 'GET /v1/events',
  hideNotification: 'POST /v1/notifications/{notification_id}/hide', kyc: 'GET /v1/customers/{id}/kyc',
  notifications: 'GET /v1/notifications', search: 'GET /v1/search', stream: 'GET /v1/notifications/sse',
  unread: 'GET /v1/notifications/unread-count', views: 'GET /v1/profile/views',
};

/** The endpoints that decide what the console shows: those that screens begin with, and those of parts. */
const ENDPOINTS = [...new Set(rows.flatMap(({ call }) => call ?? [])), ...Object.values(CALL)];

const CLIENT_ROLES = new Set(['Customer', 'Registrant']);

/** Whether the caller is a customer of the bank and nothing else: they get the screens of customers. */
export function isClient() {
  const roles = caller.get()?.me.roles ?? [];
  return roles.length > 0 && roles.every((name) => CLIENT_ROLES.has(name));
}

/** The role that every active user has without being given it. */
export const EVERYONE = '0193b000-0000-7000-8000-000000000005';

const BUILT_IN = new Set(['Administrator', 'Advisor', 'Customer', 'Registrant', 'Everyone']);

/** A role's name: built-in roles in the user's language, others as the bank named them. */
export const roleName = (name) => (BUILT_IN.has(name) ? t(`role.${name}`) : name);

/** A role's description, translated for built-in roles. */
export const roleText = (role) => (BUILT_IN.has(role.name) && role.built_in !== false ? t(`role_text.${role.name}`) : role.description);

/** The caller: {me, allowed: Set of "type.permission" and of endpoints}; null until it is loaded. */
export const caller = store(null);

const ACTIVE_KEY = 'kontor.active';

/** The reason of an error for users to whom the bank has not given a role yet. */
export const NO_ROLE = 'no_role';

/**
 * Reads the caller's user record before anything else, unless they had permissions in this browser before. A user who waits for the bank
 * would get only rejections. It throws an error with the reason NO_ROLE for them.
 */
export async function meIfNew() {
  const id = session.get()?.user_id;
  if (id && localStorage.getItem(ACTIVE_KEY) === id) return undefined;
  const me = await api.get('/v1/users/me');
  if (me.status === 'pending' || !me.roles.length) {
    throw new ApiError({ status: 403, message: t('waiting.title'), details: { reason: NO_ROLE } });
  }
  localStorage.setItem(ACTIVE_KEY, me.id);
  return me;
}

/** Loads the caller's user record, unless it is known, and their permissions on each record type and endpoints, with one request each. */
export async function loadCaller(known) {
  const checks = [
    ...TYPES.flatMap((type) => PERMISSIONS.map((permission) => ({ rec_type: type, permission }))),
    ...ENDPOINTS.map((endpoint) => ({ endpoint })),
  ];
  const [me, answer] = await Promise.all([known ?? api.get('/v1/users/me'), api.post('/v1/rbac/check', { checks })]);
  learnUsers([me]);
  const allowed = new Set();
  answer.results.forEach((result, i) => {
    const { endpoint, rec_type: type, permission } = checks[i];
    if (result.allowed) allowed.add(endpoint ?? `${type}.${permission}`);
  });
  caller.set({ me, allowed });
}

/** Loads the caller's user record again. */
export async function reloadMe() {
  const me = await api.get('/v1/users/me');
  caller.set((was) => was && { ...was, me });
}

/** Whether the caller holds a permission on a record type. */
export const may = (type, permission) => caller.get()?.allowed.has(`${type}.${permission}`) ?? false;

/** Whether the caller holds any permission on a record type. */
export const mayAny = (type) => PERMISSIONS.some((permission) => may(type, permission));

/** Whether the caller may call one of ENDPOINTS. */
export const mayCall = (endpoint) => caller.get()?.allowed.has(endpoint) ?? false;

/** Renders the component again when the caller changes. */
export const useCaller = () => useStore(caller);

/**
 * Loads the caller's permissions on one record.
 * @param {string} type
 * @param {string} id
 * @returns {Record<string, boolean>} permission → allowed; empty until they are loaded
 */
export function useRights(type, id) {
  const { data } = useLoad(async () => {
    if (!id) return {};
    const checks = PERMISSIONS.map((permission) => ({ rec_type: type, permission, rec_id: id }));
    const { results } = await api.post('/v1/rbac/check', { checks });
    return Object.fromEntries(PERMISSIONS.map((permission, i) => [permission, results[i].allowed]));
  }, [type, id]);
  return data ?? {};
}
