// The changes of the permissions and endpoints of a role: the choices of the user, and the endpoints that new permissions need.
// A key is "customers read" for a permission and "GET /v1/customers" for an endpoint.
import { PERMISSIONS } from '../../access.js';

const isEndpoint = (key) => key.includes('/');

/** Endpoints without a record type of their own, with the types whose readers need them. */
const SHARED = [
  [(path) => path === '/v1/search', ['customers', 'personas', 'payers', 'users', 'tasks', 'chats']],
  [(path, method) => path.startsWith('/v1/files/') && method === 'GET', ['customers', 'tasks', 'chats']],
];

/** Whether holders of a permission need the endpoint to use it. */
function needs({ endpoint, access }, type, permission) {
  const reads = permission === 'read' || permission === 'read_all';
  if (access === `bearer ${type}:${permission}` || (reads && access === `bearer ${type}:read`)) return true;
  if (access !== 'bearer' || !reads) return false;
  const [method, path] = endpoint.split(' ');
  return SHARED.some(([is, types]) => types.includes(type) && is(path, method));
}

/** The permissions and endpoints that a role has: a set of keys. */
const heldBy = (matrix) => new Set([
  ...matrix.types.flatMap(({ rec_type: type, permissions }) => permissions.map((one) => `${type} ${one}`)), ...matrix.endpoints,
]);

/**
 * Returns all changes: the choices, and the endpoints that permissions among them need. A choice about an endpoint wins.
 * @param {{types: object[], endpoints: string[]}} matrix
 * @param {{endpoint: string, access: string}[]} endpoints all endpoints
 * @param {Map<string, boolean>} chosen what the user has set, by key
 * @returns {Map<string, boolean>} by key; only what differs from the matrix
 */
export function changesOf(matrix, endpoints, chosen) {
  const held = heldBy(matrix);
  const wanted = new Map();
  for (const [key, on] of chosen) {
    const [type, permission] = key.split(' ');
    if (isEndpoint(key) || !on || held.has(key)) continue;
    for (const row of endpoints) if (needs(row, type, permission)) wanted.set(row.endpoint, true);
  }
  for (const [key, on] of chosen) wanted.set(key, on);
  return new Map([...wanted].filter(([key, on]) => on !== held.has(key)));
}

/** The endpoints that are added because permissions need them, and that the user has not chosen themselves. */
export const addedByNeed = (changes, chosen) => [...changes.keys()].filter((key) => isEndpoint(key) && !chosen.has(key));

/** Returns the choices after the user has set one; a choice that changes nothing is no longer one. */
export function choose(matrix, endpoints, chosen, key, on) {
  const without = new Map(chosen);
  without.delete(key);
  const usual = changesOf(matrix, endpoints, without).get(key) ?? heldBy(matrix).has(key);
  return usual === on ? without : without.set(key, on);
}

/** Returns the request for the changes: all types with their permissions, and all endpoints. */
export function requestOf(matrix, changes) {
  const held = heldBy(matrix);
  for (const [key, on] of changes) {
    if (on) held.add(key);
    else held.delete(key);
  }
  const types = matrix.types.map(({ rec_type: type }) => ({
    rec_type: type, permissions: PERMISSIONS.filter((one) => held.has(`${type} ${one}`)),
  }));
  return { types: types.filter((row) => row.permissions.length), endpoints: [...held].filter(isEndpoint) };
}
