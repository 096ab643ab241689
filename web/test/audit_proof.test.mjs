import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import './browser.mjs';

const { verifyExport } = await import('../app/audit_proof.js');

const FILE = readFileSync(new URL('testdata/audit.jsonl', import.meta.url), 'utf8'); // two parts of a server's export: 3 entries, then 2
const LINES = FILE.split('\n').slice(0, -1);
const KEY = JSON.parse(LINES[3]).head.public_key;
const join = (lines) => lines.map((line) => `${line}\n`).join('');

test('an export of the server is proven', async () => {
  const { from, to, heads, signedAt, key, first, last } = await verifyExport(FILE, ['other', KEY]);
  assert.deepEqual([from, to, heads, signedAt, key], [279, 283, 2, '2026-11-26T03:22:05.781Z', KEY]);
  assert.deepEqual([first.action, last.action], ['users.create', 'audit.export']);
  assert.equal((await verifyExport(join(LINES.slice(0, 4)), [KEY])).to, 281);
});

/** The file with one line replaced. */
const withLine = (i, line) => join(LINES.map((one, n) => (n === i ? line : one)));
const change = (i, edit) => withLine(i, JSON.stringify(edit(JSON.parse(LINES[i]))));

test('every changed member of an entry is noticed', async () => {
  for (const name of Object.keys(JSON.parse(LINES[1]))) {
    const other = (value) => (typeof value === 'number' ? value + 1 : value.replace(/.?$/, (c) => (c === '0' ? '1' : '0')));
    const file = change(1, (e) => ({ ...e, [name]: other(e[name]) }));
    await assert.rejects(verifyExport(file, [KEY]), { name: 'Error' }, name);
  }
});

test('a file that was changed in another way is rejected, and the line is named', async () => {
  const [a, b, c, head, d, e, end] = LINES;
  const forged = (name, value) => change(6, (one) => ({ ...one, head: { ...one.head, [name]: value } }));
  for (const [why, file, line, reason] of [
    ['an entry is missing', join([a, c, head, d, e, end]), 2, 'missing'],
    ['the first entry is missing', join([b, c, head, d, e, end]), 3, 'head'],
    ['the last entry is missing', join([a, b, c, head, d, end]), 6, 'head'],
    ['entries are swapped', join([b, a, c, head, d, e, end]), 2, 'missing'],
    ['an entry is repeated', join([a, a, b, c, head, d, e, end]), 2, 'missing'],
    ['parts are swapped', join([d, e, end, a, b, c, head]), 4, 'missing'],
    ['the end is missing', join([a, b, c, head, d, e]), 6, 'cut'],
    ['there is no head', join([a, b, c]), 3, 'unsigned'],
    ['the last line is cut', FILE.slice(0, -20), 7, 'cut'],
    ['the head of another part', join([a, b, c, end]), 4, 'head'],
    ['an empty file', '', 1, 'unsigned'],
    ['another file', 'hello\n', 1, 'form'],
    ['a list', '[]\n', 1, 'form'],
    ['null', 'null\n', 1, 'form'],
    ['a member that the hash does not cover', change(0, (one) => ({ ...one, note: 'x' })), 1, 'form'],
    ['a member that stands twice', withLine(0, a.replace('{', '{"actor":"someone",')), 1, 'form'],
    ['a number as text', change(0, (one) => ({ ...one, seq: '279' })), 1, 'form'],
    ['a list as text', change(0, (one) => ({ ...one, detail: [''] })), 1, 'form'],
    ['an unknown form', change(0, (one) => ({ ...one, form: 3 })), 1, 'form'],
    ['a form that covers less', change(0, (one) => ({ ...one, form: 1 })), 1, 'changed'],
    ['space', withLine(0, ` ${a}`), 1, 'form'],
    ['a later end', forged('at', '2027-01-01T00:00:00.000Z'), 7, 'signature'],
    ['a head over fewer entries', forged('from', 283), 7, 'signature'],
    ['a head with another key', forged('public_key', 'AAAA'), 7, 'key_unknown'],
    ['a signature of the other head', change(6, (one) => ({ ...one, signature: JSON.parse(head).signature })), 7, 'signature'],
    ['no signature', change(6, ({ head: it }) => ({ head: it })), 7, 'signature'],
  ]) {
    await assert.rejects(verifyExport(file, [KEY]), (error) => {
      assert.deepEqual([error.line, error.reason], [line, reason], why);
      return true;
    });
  }
});

test('another key does not prove it', async () => {
  await assert.rejects(verifyExport(FILE, []), { reason: 'key_unknown', line: 4 });
  await assert.rejects(verifyExport(FILE, [`A${KEY.slice(1)}`]), { reason: 'key_unknown' });
});

test('whoever signs with a key of their own needs the hashes, too', async () => {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  const own = Buffer.from(await crypto.subtle.exportKey('raw', pair.publicKey)).toString('base64');
  const head = { ...JSON.parse(LINES[3]).head, public_key: own };
  const signed = ['kontor audit export 1', head.from, head.to, head.prev_hash, head.hash, head.at, own, ''].join('\n');
  const signature = Buffer.from(await crypto.subtle.sign('Ed25519', pair.privateKey, Buffer.from(signed))).toString('base64');
  const end = JSON.stringify({ head, signature });
  const changed = JSON.stringify({ ...JSON.parse(LINES[1]), actor: 'someone' });
  assert.equal((await verifyExport(join([...LINES.slice(0, 3), end]), [own])).heads, 1);
  await assert.rejects(verifyExport(join([...LINES.slice(0, 3), end]), [KEY]), { reason: 'key_unknown' });
  await assert.rejects(verifyExport(join([LINES[0], changed, LINES[2], end]), [own]), { reason: 'changed', line: 2 });
});
