import { ApiError } from './api.js';
import { language, t } from './i18n.js';
import { deviceName, freshToken, isOwn, renew, SignedOut } from './session.js';

/**
 * Uploads a file as the body of a request. fetch() cannot report progress in every browser, XMLHttpRequest can.
 * @param {string} path
 * @param {File} file
 * @param {{progress?: (share: number) => void, signal?: AbortSignal, key?: string}} [options]
 *   progress receives the part that was sent, from 0 to 1; key is the Idempotency-Key
 * @returns {Promise<object>} the record of the file; it throws an ApiError, or SignedOut
 */
export async function uploadFile(path, file, options = {}) {
  let token = await freshToken();
  let answer = await send(path, file, token, options);
  if (answer.status === 401) {
    token = await renew(token);
    answer = await send(path, file, token, options);
  }
  if (!isOwn(token)) throw new SignedOut();
  const body = parse(answer.responseText);
  if (answer.status === 201) return body;
  const wait = Number(answer.getResponseHeader('Retry-After'));
  throw new ApiError({
    status: answer.status,
    code: body.code,
    message: body.message ?? t('error.unreadable', { status: answer.status }),
    details: body.details,
    retryAfter: wait > 0 ? wait : undefined,
    requestId: answer.getResponseHeader('X-Request-ID') ?? undefined,
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function send(path, file, token, { progress, signal, key }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    const fail = () => reject(new ApiError({ message: t('error.network'), code: 'network' }));
    request.open('POST', path);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.setRequestHeader('Accept-Language', language.get());
    request.setRequestHeader('X-Device-ID', deviceName());
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    const name = encodeURIComponent(file.name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
    request.setRequestHeader('Content-Disposition', `attachment; filename*=UTF-8''${name}`);
    if (key) request.setRequestHeader('Idempotency-Key', key);
    request.upload.onprogress = (event) => event.lengthComputable && progress?.(event.loaded / event.total);
    request.onload = () => resolve(request);
    request.onerror = fail;
    request.ontimeout = fail;
    request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
    request.onloadend = () => signal?.removeEventListener('abort', stop);
    if (signal?.aborted) return reject(new DOMException('cancelled', 'AbortError'));
    signal?.addEventListener('abort', stop);
    return request.send(file);
  });
}
