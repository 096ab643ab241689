// Helpers of the tests. They run against a real server, whose address and administrator are in the environment.

import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

import { Kontor } from 'kontor-client';

export const { KONTOR_URL: address, KONTOR_USER: user, KONTOR_PASSWORD: password, KONTOR_API_KEY: apiKey } = process.env;

/** Short pauses, so that repetitions do not slow the tests down. */
export const quick = { firstWait: 5, maxWait: 2_000 };

/** Returns a client that is signed in as the administrator. */
export async function signedIn(options = {}) {
  const kontor = new Kontor(address, { ...quick, ...options });
  await kontor.signIn(user, password);
  return kontor;
}

/** Returns fetch with a list of the paths that it has requested. */
export function recorded() {
  const paths = [];
  const record = (input, init) => {
    paths.push(new URL(input).pathname);
    return fetch(input, init);
  };
  return { paths, fetch: record };
}

/** Runs a service of the test until it ends, and returns its address. */
export async function serve(t, handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Returns the code of an authenticator app (RFC 6238) for a secret in base32. */
export function totp(secret, at = Date.now()) {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret.replaceAll('=', '')].map((c) => alphabet.indexOf(c).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const hash = createHmac('sha1', key).update(counter).digest();
  const code = hash.readUInt32BE(hash.at(-1) & 15) & 0x7fffffff;
  return String(code % 1_000_000).padStart(6, '0');
}
