import assert from 'node:assert/strict';
import { test } from 'node:test';
import './browser.mjs';

const { greeting } = await import('../app/greeting.js');
const { switchLanguage } = await import('../app/i18n.js');

test('the greeting follows the time of day, and names the user if the name is known', async () => {
  await switchLanguage('en');
  assert.equal(greeting('Anna Keller', 0), 'Good morning, Anna Keller');
  assert.equal(greeting('Anna Keller', 11), 'Hello, Anna Keller');
  assert.equal(greeting('', 18), 'Good evening');
  assert.equal(greeting('{name}', 23), 'Good evening, {name}');
  await switchLanguage('fr');
  assert.equal(greeting('Anna Keller', 10), 'Bonjour Anna Keller');
});
