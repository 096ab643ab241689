import {
  deviceName, freshToken, isOwn, reauthenticate, RefreshUnavailable, renew, requestProven, requireFactor, SignedOut,
} from './session.js';
import { language, t } from './i18n.js';
import { learnPeople } from './people.js';
import { takeProviderProof } from './provider_proof.js';

/** An error of the server or the network, with a message in the user's language. */
export class ApiError extends Error {
  /**
   * @param {{status?: number, code?: string, message?: string, details?: object, retryAfter?: number, requestId?: string,
   *   hint?: string}} about hint: advice that is more specific than advice()
   */
  constructor(about) {
    super(about.message);
    this.status = about.status ?? 0;
    this.code = about.code ?? '';
    this.details = about.details;
    this.retryAfter = about.retryAfter;
    this.requestId = about.requestId;
    this.hint = about.hint;
    this.cancelled = false; // whether the user closed the dialog that would have made the request succeed
  }

  /** The messages for form fields, by field name; null when the error is not about fields. */
  get fields() {
    const wrong = this.status === 400 && this.details;
    return wrong && Object.values(wrong).every((text) => typeof text === 'string') ? wrong : null;
  }
}

/** Returns one sentence that says what the user can do about an error. */
export function advice(error) {
  if (error.retryAfter) return t('advice.wait', { n: error.retryAfter });
  if (error.status === 0) return t('advice.network');
  if (error.status === 403) return t('advice.forbidden');
  if (error.status === 404) return t('advice.not_found');
  if (error.status === 409) return t('advice.conflict');
  if (error.status === 412) return t('advice.changed');
  if (error.status === 413) return t('advice.too_large');
  if (error.status >= 500) return t('advice.server');
  return t('advice.check');
}

async function errorOf(response) {
  const text = await response.text().catch(() => '');
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Not every error is JSON: the stream's "server shutting down" is plain text.
  }
  const wait = Number(response.headers.get('Retry-After'));
  return new ApiError({
    status: response.status,
    code: body.code ?? body.overall_status,
    message: body.message || t('error.unreadable', { status: response.status }),
    details: body.details,
    retryAfter: wait > 0 ? wait : undefined,
    requestId: response.headers.get('X-Request-ID') ?? undefined,
  });
}

/** Encodes a query string; arrays repeat the name, empty values are omitted. */
export function queryString(query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '') params.append(name, each);
    }
  }
  const text = params.toString();
  return text ? `?${text}` : '';
}

function requestInit(method, options) {
  const headers = {
    Accept: 'application/json', 'Accept-Language': language.get(), 'X-Device-ID': deviceName(), ...options.headers,
  };
  if (options.ifMatch) headers['If-Match'] = options.ifMatch;
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  const body = options.form ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  return { method, headers, body, signal: options.signal, cache: 'no-store', keepalive: options.keepalive };
}

/** Returns the proof of identity that a 401 asks for (RFC 9470), or null: the session itself is still valid then. */
function proofFor(response) {
  const challenge = response.headers.get('WWW-Authenticate') ?? '';
  if (!challenge.includes('insufficient_user_authentication')) return null;
  return /acr_values="[^"]*\baal2\b/.test(challenge) ? 'aal2' : 'fresh';
}

/** How often the same remedy may be tried for one request. A shared dialog may first give a weaker proof than needed. */
const MAX_TRIES = { renew: 1, proof: 2, factor: 1 };

/** Returns a body with the members of a proof. An account that is linked has taken the name code already. */
const withProof = (body = {}, proof) => (body.code && proof.code ? { ...body, factor_code: proof.code } : { ...body, ...proof });

/**
 * Sends a request again with a proof of the user in its body, and returns the response. The dialog stays open for wrong proofs.
 * given is what the user has proved themself with for this request before: a password counts again.
 */
async function sendProven(url, init, body, refusal, given) {
  async function attempt(proof) {
    const headers = { ...init.headers, 'Content-Type': 'application/json' };
    const response = await fetch(url, { ...init, headers, body: JSON.stringify(withProof(body, proof)) });
    if (response.ok) return response;
    const error = await errorOf(response);
    if (error.fields?.factor_code) error.fields.code = error.fields.factor_code;
    throw error;
  }
  const code = takeProviderProof();
  if (code) return attempt({ oidc_proof: code });
  if (given?.password) return attempt({ password: given.password });
  const response = await requestProven(refusal.details.methods, attempt);
  refusal.cancelled = !response;
  if (!response) throw refusal;
  return response;
}

/**
 * Removes the cause of a refusal: renews the token, or asks the user for a proof of identity or a second factor.
 * Returns the token for the next attempt, and the proof that the user gave; throws the error if there is no remedy.
 */
async function remedy(response, error, stale, tries) {
  const proof = response.status === 401 && proofFor(response);
  const kind = proof ? 'proof' : response.status === 401 ? 'renew' : error.code === 'auth_m.factor_required' ? 'factor' : '';
  tries[kind] = (tries[kind] ?? 0) + 1;
  if (!kind || tries[kind] > MAX_TRIES[kind]) throw error;
  if (kind === 'renew') return { token: await renew(stale) };
  const given = await (proof ? reauthenticate(proof) : requireFactor());
  error.cancelled = !given;
  if (error.cancelled) throw error;
  return { token: await freshToken(), given };
}

/**
 * Sends a request and returns the response of a success; anything else throws an ApiError, or SignedOut if the user has signed out
 * meanwhile.
 * @param {string} method
 * @param {string} path
 * @param {{query?: object, body?: any, form?: FormData, headers?: object, token?: string, anonymous?: boolean,
 *   signal?: AbortSignal, ifMatch?: string, keepalive?: boolean}} [options]
 *   anonymous: send no token; token: send this one and never renew it; keepalive: also when the page closes meanwhile.
 */
export async function send(method, path, options = {}) {
  const init = requestInit(method, options);
  const url = path + queryString(options.query);
  try {
    let token = options.anonymous ? null : options.token ?? (await freshToken());
    const renewable = token && !options.token;
    let given = null;
    for (const tries = {}; ;) {
      if (token) init.headers.Authorization = `Bearer ${token}`;
      const response = await fetch(url, init);
      if (renewable && !isOwn(token)) throw new SignedOut();
      if (response.ok) return response;
      const error = await errorOf(response);
      if (!renewable) throw error;
      if (error.code === 'auth_m.proof_required') return await sendProven(url, init, options.body, error, given);
      const remedied = await remedy(response, error, token, tries);
      ({ token } = remedied);
      given = remedied.given ?? given;
    }
  } catch (error) {
    if (error instanceof RefreshUnavailable) throw await errorOf(error.response);
    throw networkError(error);
  }
}

const networkError = (error) => (error instanceof TypeError ? new ApiError({ message: t('error.network'), code: 'network' }) : error);

/** Reads a response to its end; a connection that breaks in the middle is a network error. */
async function bodyOf(response) {
  const text = await response.text().catch((error) => { throw networkError(error); });
  const body = text ? JSON.parse(text) : null;
  learnPeople(body);
  return body;
}

const json = async (method, path, options) => bodyOf(await send(method, path, options));

/** The API by method; each function resolves to the decoded body or throws an ApiError. */
export const api = {
  get: (path, query, options) => json('GET', path, { query, ...options }),
  post: (path, body = {}, options) => json('POST', path, { body, ...options }),
  put: (path, body = {}, options) => json('PUT', path, { body, ...options }),
  patch: (path, body = {}, options) => json('PATCH', path, { body, ...options }),
  delete: (path, options) => json('DELETE', path, options),
  upload: (path, form) => json('POST', path, { form }),
  /** Reads one page of a list and the address of the next page, which is null on the last one. */
  async page(path, query) {
    const response = await send('GET', path, { query });
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1] ?? null;
    return { data: await bodyOf(response), next };
  },
  /** Reads or changes a record, and returns it with its ETag, for a later If-Match. */
  async withETag(path, method = 'GET', options = undefined) {
    const response = await send(method, path, options);
    return { record: await bodyOf(response), etag: response.headers.get('ETag') };
  },
};

/** Returns a value for the Idempotency-Key header. A form makes one when it opens, so that a retry creates nothing twice. */
export const idempotencyKey = () => (crypto.randomUUID
  ? crypto.randomUUID()
  : `${Date.now()}-${Math.random().toString(36).slice(2)}`);
