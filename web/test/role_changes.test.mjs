import './browser.mjs';
import assert from 'node:assert/strict';
import { test } from 'node:test';

const { addedByNeed, changesOf, choose, requestOf } = await import('../app/screens/admin/role_changes.js');

const matrix = {
  types: [{ rec_type: 'customers', permissions: ['read'] }, { rec_type: 'tasks', permissions: [] }], endpoints: ['GET /v1/tasks/{id}'],
};
const endpoints = [
  { endpoint: 'GET /v1/customers', access: 'bearer customers:read' }, { endpoint: 'POST /v1/customers', access: 'bearer customers:create' },
  { endpoint: 'GET /v1/tasks', access: 'bearer tasks:read' }, { endpoint: 'GET /v1/tasks/{id}', access: 'bearer tasks:read' },
  { endpoint: 'GET /v1/search', access: 'bearer' }, { endpoint: 'GET /v1/audit', access: 'bearer audit:read' },
  { endpoint: 'GET /v1/users/me', access: 'bearer' },
];

test('a new permission brings the endpoints that it needs and that the role lacks', () => {
  const chosen = choose(matrix, endpoints, new Map(), 'tasks read_all', true);
  const changes = changesOf(matrix, endpoints, chosen);
  assert.deepEqual([...changes.keys()].sort(), ['GET /v1/search', 'GET /v1/tasks', 'tasks read_all']);
  assert.deepEqual(addedByNeed(changes, chosen).sort(), ['GET /v1/search', 'GET /v1/tasks']);
  assert.deepEqual(requestOf(matrix, changes), {
    types: [{ rec_type: 'customers', permissions: ['read'] }, { rec_type: 'tasks', permissions: ['read_all'] }],
    endpoints: ['GET /v1/tasks/{id}', 'GET /v1/tasks', 'GET /v1/search'],
  });
});

test('taking a permission back undoes what it brought, and takes nothing else', () => {
  const chosen = choose(matrix, endpoints, new Map([['customers create', true]]), 'customers create', false);
  assert.equal(changesOf(matrix, endpoints, chosen).size, 0);
  const without = choose(matrix, endpoints, new Map(), 'customers read', false);
  assert.deepEqual([...changesOf(matrix, endpoints, without)], [['customers read', false]]);
});

test('a choice about an endpoint wins, and can be taken back', () => {
  let chosen = choose(matrix, endpoints, new Map(), 'customers create', true);
  chosen = choose(matrix, endpoints, chosen, 'POST /v1/customers', false);
  assert.deepEqual([...changesOf(matrix, endpoints, chosen).keys()], ['customers create']);
  chosen = choose(matrix, endpoints, chosen, 'POST /v1/customers', true);
  assert.deepEqual([...changesOf(matrix, endpoints, chosen).keys()].sort(), ['POST /v1/customers', 'customers create']);
});
