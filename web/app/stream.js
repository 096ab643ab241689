import { store } from './store.js';
import { deviceName, freshToken, renew, session } from './session.js';
import { language } from './i18n.js';
import { learnPeople } from './people.js';

// One tab reads the stream and broadcasts every frame to the others. Over HTTP/1.1 a browser opens at most six
// connections to a host: with one stream per tab, the seventh tab could not load anything.
const SILENCE_MS = 90_000; // More than three default heartbeats: the connection is dead, even if the browser has not noticed.
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
const DENIED_PAUSE_MS = 300_000; // while the bank has taken the right to the stream
const CLOSE_PAUSE_MS = 4_000; // After `close` the server restarts; an immediate retry would fail.

/** The state of the connection: 'connecting', 'live', 'waiting' (until `retryAt`), 'offline' (the browser has no network) or 'off'. */
export const connection = store({ state: 'off' });

const channel = 'BroadcastChannel' in window ? new BroadcastChannel('kontor.stream') : null;
const listeners = new Set();
let lastEventID = '';
let stopper = null;
let wasOpen = false; // The stream was open before, so frames may have been missed since.

/**
 * Calls fn for each frame {event, data, id}; returns the function that stops that. An `open` frame has `again` when the
 * stream was open before.
 * @param {(frame: {event: string, data: any, id?: string, again?: boolean}) => void} fn
 */
export function onFrame(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

function dispatch(frame) {
  if (frame.id) lastEventID = frame.id;
  if (frame.event === 'open') {
    frame.again = wasOpen;
    wasOpen = true;
  }
  learnPeople(frame.data);
  for (const fn of [...listeners]) fn(frame);
}

function publishState(state) {
  connection.set(state);
  channel?.postMessage({ state });
}

/** Sends a frame to the user's other tabs only. */
export const broadcast = (frame) => channel?.postMessage({ frame });

let reading = false;
if (channel) {
  channel.onmessage = ({ data }) => {
    if (!stopper) return;
    if (data.ask && reading) channel.postMessage({ state: connection.get() });
    if (data.state && !reading) {
      connection.set(data.state);
      wasOpen ||= data.state.state === 'live';
    }
    if (data.frame) dispatch(data.frame);
  };
}

/** Opens the stream of the signed-in user, or follows the tab that already reads it. */
export function startStream() {
  stopStream();
  const stop = (stopper = new AbortController());
  lastEventID = '';
  wasOpen = false;
  connection.set({ state: 'connecting' });
  if (!navigator.locks) return void read(stop.signal);
  channel?.postMessage({ ask: true });
  navigator.locks.request('kontor.stream', { signal: stop.signal }, () => read(stop.signal)).catch(() => {}); // Only an abort rejects.
}

/** Stops the stream of this tab. */
export function stopStream() {
  stopper?.abort();
  stopper = null;
  reading = false;
  connection.set({ state: 'off' });
}

language.watch(() => stopper && startStream()); // The server translates frames into the language of the request.

async function read(stop) {
  reading = true;
  let failures = 0;
  while (!stop.aborted) {
    publishState({ state: 'connecting' });
    const end = await readOnce(stop, () => (failures = 0));
    if (stop.aborted || !session.get()) break;
    const backoff = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++) * (0.5 + Math.random() / 2);
    const pause = end.pause ?? backoff;
    publishState({ state: navigator.onLine === false ? 'offline' : 'waiting', retryAt: Date.now() + pause });
    await wait(pause, stop);
  }
  reading = false;
}

/** Reads one connection to its end; returns how long to wait before the next one, when the server says so. */
async function readOnce(stop, onOpen) {
  const request = new AbortController();
  const abort = () => request.abort();
  stop.addEventListener('abort', abort);
  window.addEventListener('offline', abort);
  let watchdog;
  const restartWatchdog = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(abort, SILENCE_MS);
  };
  try {
    const token = await freshToken();
    if (!token) return {};
    restartWatchdog();
    const response = await fetch('/v1/notifications/sse', { headers: headers(token), signal: request.signal, cache: 'no-store' });
    if (response.status === 401) {
      await renew(token);
      return { pause: 0 };
    }
    if (response.status === 403) return { pause: DENIED_PAUSE_MS };
    if (!response.ok) return { pause: Number(response.headers.get('Retry-After')) * 1000 || undefined };
    onOpen();
    publishState({ state: 'live' });
    let closed = false;
    for await (const frame of frames(response.body, restartWatchdog)) {
      if (frame.event === 'close') closed = true;
      dispatch(frame);
      broadcast(frame);
    }
    return closed ? { pause: CLOSE_PAUSE_MS * (0.75 + Math.random() / 2) } : {};
  } catch {
    return {}; // The connection broke or the watchdog aborted it; the backoff applies.
  } finally {
    clearTimeout(watchdog);
    stop.removeEventListener('abort', abort);
    window.removeEventListener('offline', abort);
    request.abort();
  }
}

function headers(token) {
  return {
    Accept: 'text/event-stream',
    Authorization: `Bearer ${token}`,
    'Accept-Language': language.get(),
    'X-Device-ID': deviceName(),
    ...(lastEventID && { 'Last-Event-ID': lastEventID }),
  };
}

/** Parses the body of an event stream into frames as the event-stream standard says; onBytes runs for each chunk. */
export async function* frames(body, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let frame = { event: 'message', data: [] };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const lines = (rest + value).split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (frame.data.length) yield { ...frame, data: parse(frame.data.join('\n')) };
        frame = { event: 'message', data: [] };
        continue;
      }
      const colon = line.indexOf(':');
      const name = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'data') frame.data.push(text);
      else if (name === 'event') frame.event = text;
      else if (name === 'id') frame.id = text;
    }
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Waits for a time, or until the browser is online again. */
function wait(ms, stop) {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      window.removeEventListener('online', end);
      stop.removeEventListener('abort', end);
      resolve();
    }
    window.addEventListener('online', end);
    stop.addEventListener('abort', end);
  });
}
