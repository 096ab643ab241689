import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { announcements, unannounced } from './announced.mjs';

const removed = { level: 3, operation: 'DELETE', path: '/v1/payers/{id}', text: 'removed' };
const changelog = (entry) => `# Changelog\n\n## Unreleased\n\n${entry}\n\n## 0.1.0\n\n- Breaking: \`GET /v1/tasks\` is gone.\n`;

test('an operation that an entry names is announced', () => {
  deepEqual(unannounced([removed], changelog('- Breaking: `DELETE /v1/payers/{id}` is gone;\n  archive payers instead.')), []);
});

test('other entries, operations and versions announce nothing', () => {
  for (const entry of ['', '- `DELETE /v1/payers/{id}` is gone.', '- Breaking: `GET /v1/payers/{id}` is gone.', '- Breaking: `DELETE /v1/payers/{id}/x` is gone.']) {
    deepEqual(unannounced([removed], changelog(entry)), [removed]);
  }
  deepEqual(unannounced([{ ...removed, operation: 'GET', path: '/v1/tasks' }], changelog('')).length, 1);
  deepEqual(announcements('# Changelog\n'), []);
});

test('a warning needs no announcement', () => {
  deepEqual(unannounced([{ ...removed, level: 2 }], changelog('')), []);
});
