// Verifies a signed export of the audit trail, as `kontor audit verify` does (store/audittrail/export.go), with the browser's own
// cryptography. It needs neither the server nor the master key.

const FIELDS = ['seq', 'form', 'at', 'actor', 'kind', 'action', 'rec_type', 'rec_id', 'session_id', 'network', 'request_id', 'detail',
  'before_hash', 'after_hash', 'prev_hash', 'hash'];
const HEAD = ['from', 'to', 'prev_hash', 'hash', 'at', 'public_key'];
const ORIGIN_FORM = 2;
const NOT_IN_FORM_1 = ['kind', 'session_id', 'network', 'request_id', 'detail']; // its hash does not cover them
const ORIGIN_TAG = 'kontor audit entry 2\n';
const NO_HASH = '0'.repeat(64);

const bytesOf = (text) => new TextEncoder().encode(text);
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** The bytes of a text in base64; none for a text that is written differently than these bytes are. */
function fromBase64(text) {
  try {
    if (btoa(atob(text)) !== text) return new Uint8Array();
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** The first wrong line of an export: its number, why it is wrong (a key of the texts audit_proof.…), and values for the text. */
export class ProofError extends Error {
  constructor(line, reason, values = {}) {
    super(reason);
    Object.assign(this, { line, reason, values });
  }
}

/** A number of 8 bytes, the highest first. */
function number64(n) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt.asUintN(64, BigInt(n)));
  return new Uint8Array(view.buffer);
}

/** A text in UTF-8, led by its length in 4 bytes. */
function measured(text) {
  const body = bytesOf(text);
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, body.length);
  return [new Uint8Array(view.buffer), body];
}

/** The hash of an entry, which covers all of it and the hash of the one before. */
async function chainHash(prev, e) {
  const texts = [e.actor, e.action, e.rec_type, e.rec_id, e.before_hash, e.after_hash];
  if (e.form === ORIGIN_FORM) texts.push(e.kind, e.session_id, e.network, e.request_id, e.detail);
  const start = [bytesOf(e.form === ORIGIN_FORM ? ORIGIN_TAG : ''), fromHex(prev), number64(e.seq), number64(Date.parse(e.at))];
  const parts = [...start, ...texts.flatMap(measured)];
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer())));
}

/** Whether an object has these members in this order and no others, and is written as the server writes it. */
function isWritten(object, names, text) {
  return Object.keys(object ?? {}).join() === names.join() && JSON.stringify(object) === text;
}

function parse(line, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProofError(line, 'form');
  }
}

const isEntry = (e, text) => isWritten(e, FIELDS, text) && Number.isSafeInteger(e.seq) && e.seq > 0 && [1, ORIGIN_FORM].includes(e.form)
  && FIELDS.slice(2).every((name) => typeof e[name] === 'string') && /^[0-9a-f]{64}$/.test(e.prev_hash)
  && new Date(e.at).toJSON?.() === e.at && (e.form === ORIGIN_FORM || NOT_IN_FORM_1.every((name) => e[name] === ''));

/** The state of a verification. */
class Verification {
  constructor(keys) {
    this.keys = keys;
    this.hashes = []; // of the entries from the first on, led by the one before
    this.report = { from: 0, to: 0, signedTo: 0, heads: 0 };
  }

  async take(line, text) {
    const object = parse(line, text);
    if (object?.head) await this.takeHead(line, text, object);
    else await this.takeEntry(line, text, object);
  }

  async takeEntry(line, text, e) {
    const { report, hashes } = this;
    if (!isEntry(e, text)) throw new ProofError(line, 'form');
    if (!hashes.length) {
      if (e.seq === 1 && e.prev_hash !== NO_HASH) throw new ProofError(line, 'order', { entry: e.seq });
      hashes.push(e.prev_hash);
      Object.assign(report, { from: e.seq, to: e.seq - 1, first: e });
    }
    if (e.seq !== report.to + 1) throw new ProofError(line, 'missing', { entry: report.to + 1 });
    if (e.prev_hash !== hashes.at(-1)) throw new ProofError(line, 'order', { entry: e.seq });
    if (await chainHash(e.prev_hash, e) !== e.hash) throw new ProofError(line, 'changed', { entry: e.seq });
    hashes.push(e.hash);
    Object.assign(report, { to: e.seq, last: e });
  }

  /** The hash of an entry, or that of the one before the first. */
  hashOf(seq) { return this.hashes[seq - this.report.from + 1]; }

  async takeHead(line, text, { head, signature }) {
    const written = isWritten({ head, signature }, ['head', 'signature'], text) && isWritten(head, HEAD, JSON.stringify(head));
    if (!written) throw new ProofError(line, 'form');
    if (!this.keys.includes(head.public_key)) throw new ProofError(line, 'key_unknown');
    const signed = ['kontor audit export 1', head.from, head.to, head.prev_hash, head.hash, head.at, head.public_key, ''].join('\n');
    const key = await crypto.subtle.importKey('raw', fromBase64(head.public_key), 'Ed25519', false, ['verify'])
      .catch((error) => { throw new ProofError(line, error.name === 'NotSupportedError' ? 'unsupported' : 'key_unknown'); });
    if (!(await crypto.subtle.verify('Ed25519', key, fromBase64(signature), bytesOf(signed)))) throw new ProofError(line, 'signature');
    const covers = head.from >= this.report.from && head.from <= head.to && head.to === this.report.to
      && head.prev_hash === this.hashOf(head.from - 1) && head.hash === this.hashOf(head.to);
    if (!covers) throw new ProofError(line, 'head');
    Object.assign(this.report, { signedTo: head.to, signedAt: head.at, key: head.public_key });
    this.report.heads++;
  }
}

/**
 * Verifies every hash and signature of an export. It throws a ProofError for the first wrong line.
 * @param {string} text the file
 * @param {string[]} keys the public keys that may have signed it, in base64
 * @returns {Promise<{from: number, to: number, heads: number, signedAt: string, key: string, first: object, last: object}>}
 */
export async function verifyExport(text, keys) {
  const v = new Verification(keys);
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new ProofError(lines.length + 1, 'cut');
  for (const [i, one] of lines.entries()) await v.take(i + 1, one);
  if (!v.report.heads) throw new ProofError(Math.max(1, lines.length), 'unsigned');
  if (v.report.signedTo !== v.report.to) throw new ProofError(lines.length, 'cut');
  return v.report;
}
