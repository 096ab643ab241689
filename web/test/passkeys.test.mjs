import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import './browser.mjs';

const { createPasskey, getPasskey, bytesOf, supportsPasskeys, textOf } = await import('../app/passkeys.js');
const { loadTexts, switchLanguage, t } = await import('../app/i18n.js');
await switchLanguage('en');
await loadTexts('security');

const bytes = (...values) => new Uint8Array(values).buffer;

/** A credential as a browser returns it. */
const credential = (response, changes = {}) => ({
  id: '-_8', rawId: bytes(0xfb, 0xff), type: 'public-key', authenticatorAttachment: 'platform', response,
  getClientExtensionResults: () => ({ credProps: { rk: true } }), ...changes,
});

let asked; // the options of the last request
let answer; // what the browser does

beforeEach(() => {
  asked = null;
  const ask = async (options) => {
    asked = options;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  window.PublicKeyCredential = {};
  navigator.credentials = { create: ask, get: ask };
});

test('base64url loses no byte', () => {
  for (const values of [[], [0], [255, 254], [251, 255, 191], Array.from({ length: 256 }, (_, i) => i)]) {
    const text = textOf(bytes(...values));
    assert.match(text, /^[\w-]*$/);
    assert.deepEqual([...bytesOf(text)], values);
  }
});

test('a new passkey becomes JSON', async () => {
  answer = credential({ clientDataJSON: bytes(1), attestationObject: bytes(2), getTransports: () => ['internal'] });
  const made = await createPasskey({ publicKey: {
    challenge: 'AQI', rp: { id: 'bank.example' }, user: { id: 'Aw', name: 'anna' }, excludeCredentials: [{ type: 'public-key', id: 'BA' }],
  } });
  assert.deepEqual([...asked.publicKey.challenge], [1, 2]);
  assert.deepEqual([...asked.publicKey.user.id], [3]);
  assert.deepEqual([...asked.publicKey.excludeCredentials[0].id], [4]);
  assert.deepEqual(made, {
    id: '-_8', rawId: '-_8', type: 'public-key', authenticatorAttachment: 'platform',
    response: { clientDataJSON: 'AQ', attestationObject: 'Ag', transports: ['internal'] },
    clientExtensionResults: { credProps: { rk: true } },
  });
});

test('the proof of a passkey becomes JSON, with and without a user', async () => {
  answer = credential({ clientDataJSON: bytes(1), authenticatorData: bytes(2), signature: bytes(3), userHandle: null });
  const proof = await getPasskey({ challenge: 'AQ', allowCredentials: [] }, { mediation: 'conditional' });
  assert.equal(asked.mediation, 'conditional');
  assert.deepEqual(proof.response, { clientDataJSON: 'AQ', authenticatorData: 'Ag', signature: 'Aw' });
  answer = credential({ clientDataJSON: bytes(1), authenticatorData: bytes(2), signature: bytes(3), userHandle: bytes(4) });
  assert.equal((await getPasskey({ challenge: 'AQ' })).response.userHandle, 'BA');
});

test('an error of the browser has words and advice', async () => {
  const reasons = { NotAllowedError: 'cancelled', InvalidStateError: 'exists', SecurityError: 'address', OddError: 'failed' };
  for (const [name, key] of Object.entries(reasons)) {
    answer = Object.assign(new Error('for developers'), { name });
    const error = await getPasskey({ challenge: 'AQ' }).catch((e) => e);
    assert.equal(error.message, t(`passkey.${key}`));
    assert.equal(error.hint, t(`passkey.${key}_hint`));
    assert.notEqual(error.message, `passkey.${key}`, 'the text is missing');
  }
  answer = Object.assign(new Error('stopped'), { name: 'AbortError' });
  assert.equal((await getPasskey({ challenge: 'AQ' }).catch((e) => e)).name, 'AbortError');
});

test('without WebAuthn the reason is said', async () => {
  delete window.PublicKeyCredential;
  assert.equal(supportsPasskeys(), false);
  assert.equal((await getPasskey({ challenge: 'AQ' }).catch((e) => e)).message, t('passkey.unsupported'));
});
