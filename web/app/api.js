import { deviceName, freshToken, proveAgain, renew, RefreshLater, session } from './session.js';
import { language, t } from './i18n.js';

/** What the server refused or could not do, in the user's language. */
export class ApiError extends Error {
  /** @param {{status?: number, code?: string, message?: string, details?: object, retryAfter?: number, requestId?: string}} about */
  constructor(about) {
    super(about.message);
    this.status = about.status ?? 0;
    this.code = about.code ?? '';
    this.details = about.details;
    this.retryAfter = about.retryAfter;
    this.requestId = about.requestId;
  }

  /** The texts beside form fields: an object from field name to what is wrong with it. */
  get fields() {
    const wrong = this.status === 400 && this.details;
    return wrong && Object.values(wrong).every((text) => typeof text === 'string') ? wrong : null;
  }
}

/** What the user can do about an error, as one sentence. */
export function advice(error) {
  if (error.retryAfter) return t('advice.wait', { n: error.retryAfter });
  if (error.status === 0) return t('advice.network');
  if (error.status === 403) return t('advice.forbidden');
  if (error.status === 404) return t('advice.missing');
  if (error.status === 409) return t('advice.conflict');
  if (error.status === 412) return t('advice.changed');
  if (error.status === 413) return t('advice.too_large');
  if (error.status >= 500) return t('advice.server');
  return t('advice.check');
}

async function failure(answer) {
  const text = await answer.text().catch(() => '');
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Not every refusal is JSON: the stream's "server shutting down" is a plain line.
  }
  const wait = Number(answer.headers.get('Retry-After'));
  return new ApiError({
    status: answer.status,
    code: body.code ?? body.overall_status,
    message: body.message || t('error.unreadable', { status: answer.status }),
    details: body.details,
    retryAfter: wait > 0 ? wait : undefined,
    requestId: answer.headers.get('X-Request-ID') ?? undefined,
  });
}

/** Writes a query string; arrays repeat the name, empty values are left out. */
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

/**
 * Sends a request and gives the response when it was a success.
 * @param {string} method
 * @param {string} path
 * @param {{query?: object, body?: any, form?: FormData, headers?: object, token?: string, open?: boolean, signal?: AbortSignal, ifMatch?: string}} [options]
 *   open: send no token; token: send this one and never renew it.
 */
export async function send(method, path, options = {}) {
  const headers = { Accept: 'application/json', 'Accept-Language': language.get(), 'X-Device-ID': deviceName(), ...options.headers };
  if (options.ifMatch) headers['If-Match'] = options.ifMatch;
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  const init = { method, headers, body: options.form ?? (options.body === undefined ? undefined : JSON.stringify(options.body)), signal: options.signal, cache: 'no-store' };
  const url = path + queryString(options.query);
  try {
    let token = options.open ? null : options.token ?? (await freshToken());
    for (let attempt = 1, asked = false; ; attempt++) {
      if (token) headers.Authorization = `Bearer ${token}`;
      const answer = await fetch(url, init);
      if (answer.ok) return answer;
      if (!asked && token && !options.token && session.get() && wantsPassword(answer)) {
        asked = true;
        const refused = await failure(answer);
        if (!(await proveAgain())) throw refused;
        token = await freshToken();
        continue;
      }
      if (answer.status === 401 && !wantsPassword(answer) && token && !options.token && session.get() && attempt === 1) {
        token = await renew(token);
        continue;
      }
      throw await failure(answer);
    }
  } catch (error) {
    if (error instanceof RefreshLater) throw await failure(error.answer);
    if (error instanceof TypeError) throw new ApiError({ message: t('error.network'), code: 'network' });
    throw error;
  }
}

/** Whether a request is refused because the password was shown too long ago (RFC 9470); the session itself is good. */
const wantsPassword = (answer) => answer.status === 401 && (answer.headers.get('WWW-Authenticate') ?? '').includes('insufficient_user_authentication');

/** Reads a body to its end; a line that breaks in the middle is a failure of the network like any other. */
async function textOf(answer) {
  try {
    return await answer.text();
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError({ message: t('error.network'), code: 'network' });
    throw error;
  }
}

async function json(method, path, options) {
  const text = await textOf(await send(method, path, options));
  return text ? JSON.parse(text) : null;
}

/** The API by verb; each resolves to the decoded body or throws an ApiError. */
export const api = {
  get: (path, query, options) => json('GET', path, { query, ...options }),
  post: (path, body = {}, options) => json('POST', path, { body, ...options }),
  put: (path, body = {}, options) => json('PUT', path, { body, ...options }),
  patch: (path, body = {}, options) => json('PATCH', path, { body, ...options }),
  delete: (path, options) => json('DELETE', path, options),
  upload: (path, form) => json('POST', path, { form }),
  /** Reads a part of a list together with the address of the rest, null where there is none. */
  async linked(path, query) {
    const answer = await send('GET', path, { query });
    return { data: JSON.parse(await textOf(answer)), next: /<([^>]*)>; rel="next"/.exec(answer.headers.get('Link') ?? '')?.[1] ?? null };
  },
  /** Reads a record together with its ETag, for a later If-Match. */
  async tagged(path) {
    const answer = await send('GET', path);
    return { record: JSON.parse(await textOf(answer)), etag: answer.headers.get('ETag') };
  },
};

/** A fresh value for the Idempotency-Key header: made once a form opens, so that a second try creates nothing twice. */
export const idempotencyKey = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random().toString(36).slice(2)}`);
