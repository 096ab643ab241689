import { store } from './store.js';
import { freshToken, renew, session, deviceName } from './session.js';
import { language } from './i18n.js';

// One tab reads the stream and passes every frame on to the others. Browsers open six connections to a host over
// HTTP/1.1: with a stream in every tab, the seventh tab could load nothing at all.
const SILENCE_MS = 90_000; // More than three heartbeats of the default: then the line is dead, whatever the browser thinks.
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const CLOSE_PAUSE_MS = 4_000; // After `close` the server restarts: coming back at once would only be refused.

/** The truth about the connection: 'connecting', 'live', 'waiting' (until `retryAt`) or 'off'. */
export const connection = store({ state: 'off' });

const channel = 'BroadcastChannel' in window ? new BroadcastChannel('kontor.stream') : null;
const listeners = new Set();
let lastEventID = '';
let stopper = null;
let wasOpen = false; // The stream was open before: between then and now frames may have been missed.

/**
 * Calls fn for each frame {event, data, id}; the result ends that. An `open` frame has `again` when the stream was
 * open before.
 * @param {(frame: {event: string, data: any, id?: string, again?: boolean}) => void} fn
 */
export function onFrame(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

function deliver(frame) {
  if (frame.id) lastEventID = frame.id;
  if (frame.event === 'open') {
    frame.again = wasOpen;
    wasOpen = true;
  }
  for (const fn of [...listeners]) fn(frame);
}

function tell(state) {
  connection.set(state);
  channel?.postMessage({ state });
}

let reading = false;
if (channel) {
  channel.onmessage = ({ data }) => {
    if (!stopper) return;
    if (data.ask && reading) channel.postMessage({ state: connection.get() });
    if (data.state && !reading) {
      connection.set(data.state);
      wasOpen ||= data.state.state === 'live';
    }
    if (data.frame) deliver(data.frame);
  };
}

/** Opens the stream for the signed-in user, here or through the tab that already reads it. */
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

/** Ends the stream of this tab. */
export function stopStream() {
  stopper?.abort();
  stopper = null;
  reading = false;
  connection.set({ state: 'off' });
}

language.watch(() => stopper && startStream()); // The server words the frames in the language of the request.

async function read(stop) {
  reading = true;
  let failures = 0;
  while (!stop.aborted) {
    tell({ state: 'connecting' });
    const end = await readOnce(stop, () => (failures = 0));
    if (stop.aborted || !session.get()) break;
    const pause = end.pause ?? Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++) * (0.5 + Math.random() / 2);
    tell({ state: 'waiting', retryAt: Date.now() + pause });
    await rest(pause, stop);
  }
  reading = false;
}

/** Reads one connection to its end and tells how long to wait before the next. */
async function readOnce(stop, opened) {
  const line = new AbortController();
  const quit = () => line.abort();
  stop.addEventListener('abort', quit);
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(quit, SILENCE_MS);
  };
  try {
    const token = await freshToken();
    if (!token) return {};
    const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${token}`, 'Accept-Language': language.get(), 'X-Device-ID': deviceName() };
    if (lastEventID) headers['Last-Event-ID'] = lastEventID;
    alive();
    const answer = await fetch('/v1/notifications/sse', { headers, signal: line.signal, cache: 'no-store' });
    if (answer.status === 401) {
      await renew(token);
      return { pause: 0 };
    }
    if (!answer.ok) return { pause: Number(answer.headers.get('Retry-After')) * 1000 || undefined };
    opened();
    tell({ state: 'live' });
    let closed = false;
    for await (const frame of frames(answer.body, alive)) {
      if (frame.event === 'close') closed = true;
      deliver(frame);
      channel?.postMessage({ frame });
    }
    return closed ? { pause: CLOSE_PAUSE_MS * (0.75 + Math.random() / 2) } : {};
  } catch {
    return {}; // The line broke or was cut by the watchdog: the pause decides when to try again.
  } finally {
    clearTimeout(watchdog);
    stop.removeEventListener('abort', quit);
    line.abort();
  }
}

/** Cuts a body into frames as the event-stream standard says. */
async function* frames(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let frame = { event: 'message', data: [] };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
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

/** Waits, but not longer than until the machine is online again. */
function rest(ms, stop) {
  return new Promise((done) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      window.removeEventListener('online', end);
      stop.removeEventListener('abort', end);
      done();
    }
    window.addEventListener('online', end);
    stop.addEventListener('abort', end);
  });
}
