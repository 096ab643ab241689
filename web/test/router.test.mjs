import assert from 'node:assert/strict';
import { test } from 'node:test';
import './browser.mjs';

const { go, match, consolePath, route, setQuery } = await import('../app/router.js');

const table = [{ path: '/' }, { path: '/customers' }, { path: '/customers/:customer/tasks/:id' }, { path: '/customers/:id/:tab?' }];

test('match finds the first row that fits, with its parameters', () => {
  for (const [path, pattern, params] of [
    ['/', '/', {}],
    ['/customers', '/customers', {}],
    ['/customers/', '/customers', {}],
    ['/customers/7', '/customers/:id/:tab?', { id: '7', tab: undefined }],
    ['/customers/7/kyc', '/customers/:id/:tab?', { id: '7', tab: 'kyc' }],
    ['/customers/7/tasks/9', '/customers/:customer/tasks/:id', { customer: '7', id: '9' }],
    ['/customers/a%20b', '/customers/:id/:tab?', { id: 'a b', tab: undefined }],
  ]) {
    const found = match(table, path);
    assert.equal(found.row.path, pattern, path);
    assert.deepEqual(found.params, params, path);
  }
});

test('match finds nothing for an address of no row', () => {
  for (const path of ['/nowhere', '/customers/7/kyc/more', 'customers']) assert.equal(match(table, path), null, path);
});

test('setQuery changes, keeps and removes parameters', () => {
  go('/customers?page=2&q=x');
  setQuery({ q: '', sort: 'name' });
  assert.equal(route.get().path, '/customers');
  assert.equal(location.search, '?page=2&sort=name');
});

test('consolePath leads to the console and nowhere else', () => {
  for (const [link, want] of [
    ['http://bank.example/#/chats/1', '/chats/1'],
    ['http://bank.example/tasks?x=1', '/tasks?x=1'],
    ['https://elsewhere.example/customers/1', '/customers/1'],
    ['https://elsewhere.example/login', null],
    ['http://[', null],
    ['', null],
  ]) assert.equal(consolePath(link), want, link);
});
