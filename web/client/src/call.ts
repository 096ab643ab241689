import { ConnectionFailed, KontorError, NotModified, NotSignedIn, TimedOut, UnexpectedAnswer } from './errors.js';
import type { Session } from './session.js';

/** Options of one call. */
export interface CallOptions {
  signal?: AbortSignal;
  /** Changes a record only if it still is this version: an ETag, or a record of {@link etagOf}. */
  ifMatch?: string | object;
  /** Throws {@link NotModified} if the record still is this version. */
  ifNoneMatch?: string | object;
  /** The key with which a creation can be repeated within 24 hours. By default each call has a random one. */
  idempotencyKey?: string;
  language?: string;
  requestId?: string;
  /** Gets the headers and the status of the answer. */
  onAnswer?: (headers: Headers, status: number) => void;
}

/** What the API document says about an operation. */
export interface Operation {
  name: string;
  method: string;
  path: string;
  bearer?: boolean;
  apiKey?: boolean;
  form?: boolean;
  keyed?: boolean;
  device?: boolean;
  accept?: string;
}

/** What one call sends. */
export interface Given {
  input?: object;
  query?: object;
}

/** Settings of a connection; the constructor of Kontor documents them. */
export interface Config {
  base: string;
  apiKey: string | undefined;
  device: string | undefined;
  language: string | undefined;
  fetch: typeof fetch;
  timeout: number;
  retries: number;
  firstWait: number;
  maxWait: number;
  maxAnswer: number;
  streamIdle: number;
}

/** An answer whose body is still to be read. */
export interface Attempt {
  response: Response;
  /** Ends the time limit: streams have none after the head. */
  settle: () => void;
  /** Frees the connection. It must be called. Reading the body afterwards throws the reason. */
  end: (reason: Error) => void;
}

/** Why an attempt ends that has succeeded. */
const complete = new Error('the answer has been read');

const etags = new WeakMap<object, string>();

/** Returns the ETag of a record that the client has returned by itself. Rows of lists have none: get the record first. */
export function etagOf(record: string | object): string {
  const tag = typeof record === 'string' ? record : etags.get(record);
  if (tag === undefined || tag === '') throw new TypeError('the record has no ETag: without one, the condition would have no effect');
  return tag;
}

/** Returns a value as one segment of a path. */
export function segment(value: string): string {
  if (value === '' || value === '.' || value === '..') throw new TypeError(`"${value}" is no id: it would address another resource`);
  return encodeURIComponent(value);
}

/** A group of operations. */
export class Group {
  constructor(protected readonly connection: Connection) {}
}

/** Sends calls to a service. */
export class Connection {
  session!: Session;

  constructor(readonly config: Config) {}

  async json<T>(op: Operation, given: Given, options: CallOptions): Promise<T> {
    return (await this.decoded<T>(op, given, options)).data;
  }

  async either<A, B>(op: Operation, given: Given, options: CallOptions): Promise<{ status: 200; data: A } | { status: 202; data: B }> {
    const { status, data } = await this.decoded<unknown>(op, given, options);
    return status === 202 ? { status: 202, data: data as B } : { status: 200, data: data as A };
  }

  async text(op: Operation, given: Given, options: CallOptions): Promise<string> {
    return new TextDecoder().decode((await this.send(op, given, options)).body);
  }

  async blob(op: Operation, given: Given, options: CallOptions): Promise<Blob> {
    const { body, headers } = await this.send(op, given, options);
    return new Blob([body as Uint8Array<ArrayBuffer>], { type: mediaType(headers) });
  }

  /** Returns the address to which an operation redirects. Browsers do not show it: open the operation as a page there. */
  async location(op: Operation, given: Given, options: CallOptions): Promise<string> {
    const { headers } = await this.send({ ...op, accept: 'location' }, given, options);
    const location = headers.get('Location');
    if (location === null) throw new UnexpectedAnswer(`${op.name}: no address to redirect to`);
    return location;
  }

  private async decoded<T>(op: Operation, given: Given, options: CallOptions): Promise<{ status: number; data: T }> {
    const { body, headers, status } = await this.send(op, given, options);
    let data: T;
    try {
      data = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as T;
    } catch (cause) {
      throw new UnexpectedAnswer(`${op.name}: broken JSON`, { cause });
    }
    const tag = headers.get('ETag');
    if (tag !== null && typeof data === 'object' && data !== null) etags.set(data, tag);
    return { status, data };
  }

  /** Performs a call with all its attempts and reads the answer. */
  private async send(op: Operation, given: Given, options: CallOptions): Promise<{ body: Uint8Array; headers: Headers; status: number }> {
    const call = prepare(this.config, op, given, options);
    const { response, end } = await this.perform(call);
    try {
      const { headers, status } = response;
      const body = await readLimited(response, this.config.maxAnswer, call);
      const wanted = op.accept ?? 'application/json';
      if (status !== 303 && !(body.length === 0 && !headers.has('Content-Type')) && !wanted.split(', ').includes(mediaType(headers))) {
        throw new UnexpectedAnswer(`${op.name}: the media type is "${mediaType(headers)}", not ${wanted}`);
      }
      options.onAnswer?.(headers, status);
      return { body, headers, status };
    } finally {
      end(complete);
    }
  }

  /** Sends a call until it succeeds, cannot be repeated, or has been repeated often enough. */
  private async perform(call: Call): Promise<Attempt> {
    let wait = this.config.firstWait;
    for (let left = this.config.retries; ; left--) {
      try {
        return await this.authorized(call);
      } catch (error) {
        const pause = left > 0 ? pauseBefore(call, error, wait) : undefined;
        if (pause === undefined || pause > this.config.maxWait) throw error;
        await sleep(pause, call.signal);
      }
      wait = Math.min(2 * wait, this.config.maxWait);
    }
  }

  /** Sends a call with the present access token. If the service rejects it, refreshes it and sends the call once more. */
  async authorized(call: Call): Promise<Attempt> {
    const { op } = call;
    if (op.apiKey && this.config.apiKey !== undefined) return this.attempt(call, { 'X-API-Key': this.config.apiKey });
    if (op.apiKey && !op.bearer) throw new NotSignedIn(`${op.name}: the operation needs an API key`);
    if (!op.bearer) return this.attempt(call, op.device ? this.deviceHeaders() : {});
    const token = await unlessAborted(this.session.token(), call.signal);
    const headers = (bearer: string): Record<string, string> => ({ Authorization: `Bearer ${bearer}`, ...(op.device ? this.deviceHeaders() : {}) });
    try {
      return await this.attempt(call, headers(token));
    } catch (error) {
      if (!(error instanceof KontorError) || error.code !== 'common.unauthorized') throw error;
      const fresh = await unlessAborted(this.session.replace(token), call.signal);
      if (fresh === token) throw error;
      return this.attempt(call, headers(fresh));
    }
  }

  private deviceHeaders(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.config.device !== undefined) headers['X-Device-ID'] = this.config.device;
    const { deviceToken } = this.session.tokens;
    if (deviceToken !== undefined) headers['X-Device-Token'] = deviceToken;
    return headers;
  }

  /** Sends a call once. Errors of the service are thrown. */
  private async attempt(call: Call, credentials: Record<string, string>): Promise<Attempt> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new TimedOut(`${call.op.name}: no complete answer in time`)), this.config.timeout);
    const cancelled = (): void => controller.abort(call.signal?.reason);
    call.signal?.addEventListener('abort', cancelled);
    if (call.signal?.aborted) cancelled();
    const settle = (): void => clearTimeout(timer);
    const end = (reason: Error): void => {
      settle();
      call.signal?.removeEventListener('abort', cancelled);
      controller.abort(reason);
    };
    let response: Response;
    try {
      const init: RequestInit = { method: call.op.method, headers: { ...call.headers, ...credentials }, redirect: 'manual', signal: controller.signal, credentials: 'same-origin' };
      if (call.body !== undefined) init.body = call.body;
      response = await this.config.fetch(call.url, init);
    } catch (cause) {
      const error = failure(call, controller.signal, cause);
      end(complete);
      throw error;
    }
    if (response.status >= 200 && response.status < 300) return { response, settle, end };
    if (response.status === 303 && call.op.accept === 'location') return { response, settle, end };
    try {
      throw await errorOf(call, response);
    } finally {
      end(complete);
    }
  }
}

/** A call that is ready to be sent, several times if necessary. */
export interface Call {
  op: Operation;
  url: string;
  headers: Record<string, string>;
  body: string | FormData | undefined;
  signal: AbortSignal | undefined;
}

/** Encodes a call. */
export function prepare(config: Config, op: Operation, given: Given, options: CallOptions): Call {
  const headers: Record<string, string> = {};
  if (op.accept !== undefined && op.accept !== 'location') headers.Accept = op.accept;
  const language = options.language ?? config.language;
  if (language !== undefined) headers['Accept-Language'] = language;
  if (options.requestId !== undefined) headers['X-Request-ID'] = options.requestId;
  if (options.ifMatch !== undefined) headers['If-Match'] = etagOf(options.ifMatch);
  if (options.ifNoneMatch !== undefined) headers['If-None-Match'] = etagOf(options.ifNoneMatch);
  if (op.keyed) headers['Idempotency-Key'] = options.idempotencyKey ?? randomKey();
  let body: string | FormData | undefined;
  if (given.input !== undefined && op.form) {
    body = new FormData();
    for (const [name, value] of Object.entries(given.input)) {
      if (value instanceof Blob) body.append(name, value, value instanceof File ? value.name : 'file');
      else if (value !== undefined) body.append(name, String(value));
    }
  } else if (given.input !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(given.input);
  }
  return { op, url: config.base + op.path + search(given.query), headers, body, signal: options.signal };
}

/** Returns a random key of 128 bits. crypto.randomUUID is missing from pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function search(query: object | undefined): string {
  const params = new URLSearchParams();
  const add = (prefix: string, values: object): void => {
    for (const [name, value] of Object.entries(values)) {
      if (Array.isArray(value)) value.forEach((one) => params.append(prefix + name, String(one)));
      else if (typeof value === 'object' && value !== null) add(`${prefix}${name}.`, value as object);
      else if (value !== undefined && value !== null) params.append(prefix + name, String(value));
    }
  };
  add('', query ?? {});
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

/** Returns the error that describes a failed connection. */
export function failure(call: Call, signal: AbortSignal, cause: unknown): unknown {
  if (call.signal?.aborted) return call.signal.reason;
  if (signal.aborted) return signal.reason;
  return new ConnectionFailed(`${call.op.name}: the connection failed`, { cause });
}

/** Returns the error that an answer describes. */
async function errorOf(call: Call, response: Response): Promise<Error> {
  const { status, headers } = response;
  if (status === 304) return new NotModified(`${call.op.name}: the record has not changed`);
  if (status < 400) return new UnexpectedAnswer(`${call.op.name}: a redirect, status ${status}`); // 0 in browsers
  let body: unknown;
  try {
    const bytes = await readLimited(response, 256 * 1024, call);
    if (mediaType(headers) === 'application/json') body = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    // A broken body leaves the status.
  }
  return new KontorError(call.op.name, status, headers, body);
}

/** Reads a body up to a limit, in bytes. */
async function readLimited(response: Response, limit: number, call: Call): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const reader = response.body.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    let part: ReadableStreamReadResult<Uint8Array>;
    try {
      part = await reader.read();
    } catch (cause) {
      if (cause instanceof TimedOut) throw cause;
      throw call.signal?.aborted ? call.signal.reason : new ConnectionFailed(`${call.op.name}: the answer ended early`, { cause });
    }
    if (part.done) break;
    size += part.value.length;
    if (size > limit) throw new UnexpectedAnswer(`${call.op.name}: the answer is larger than ${limit} bytes`);
    parts.push(part.value);
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** Returns the media type of an answer without parameters. */
export function mediaType(headers: Headers): string {
  return (headers.get('Content-Type') ?? '').split(';')[0]!.trim().toLowerCase();
}

const notCarriedOut = new Set(['rate_limits_m.exceeded', 'rate_limits_m.too_many_at_once', 'common.unavailable', 'auth_m.internal_server_error', 'notifications.too_many_connections']);

/** Returns the milliseconds after which a failed call may be sent again, or undefined if it may not. */
function pauseBefore(call: Call, error: unknown, wait: number): number | undefined {
  const safe = call.op.method === 'GET' || call.op.keyed === true;
  if (error instanceof ConnectionFailed) return safe ? jitter(wait) : undefined;
  if (!(error instanceof KontorError)) return undefined;
  const unknown = error.code === 'common.outcome_unknown' || (error.code === undefined && [502, 503, 504].includes(error.status));
  const again = error.shutdown || notCarriedOut.has(error.code ?? '') || (safe && unknown);
  return again ? Math.max(jitter(wait), error.retryAfter) : undefined;
}

/** Returns between half of a pause and all of it, so that many clients do not return at the same time. */
export function jitter(pause: number): number {
  return pause / 2 + (Math.random() * pause) / 2;
}

/** Waits, or throws the reason of the signal. */
export async function sleep(pause: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await unlessAborted(new Promise<void>((resolve) => (timer = setTimeout(resolve, pause))), signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a promise, or throws the reason of the signal. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop!);
    promise.catch(() => undefined); // The caller has left and cannot handle the error.
  }
}
