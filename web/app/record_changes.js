import { useEffect, useRef } from './lib.js';
import { send } from './api.js';
import { may } from './access.js';
import { frames } from './stream.js';

// Changes of the record on the screen, from the change feed. Each visible tab that shows a record holds one connection; a hidden tab
// holds none, and looks again when it is shown. Callers without read_all see only their own records, and need no feed for them.

const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;

const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    resolve();
  }, { once: true });
});

/**
 * Reads the feed until it is aborted; onEvent gets each event, and null when some may have been missed: at each beginning, because the
 * record may have changed after it was read.
 */
async function follow(types, onEvent, signal) {
  for (let failures = 0; !signal.aborted;) {
    try {
      const query = { after: 'latest', types };
      const { body } = await send('GET', '/v1/events', { query, headers: { Accept: 'text/event-stream' }, signal });
      failures = 0;
      onEvent(null);
      for await (const frame of frames(body, () => {})) {
        if (frame.event === 'change') onEvent(frame.data);
      }
    } catch (error) {
      if (signal.aborted || error.status === 403 || error.status === 401) return;
    }
    await pause(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++) * (0.5 + Math.random() / 2), signal);
  }
}

/**
 * Calls fn when a record may have changed while the component is shown.
 * @param {string} type the record type, such as customers
 * @param {string} id
 * @param {() => void} fn
 */
export function useRecordChanges(type, id, fn) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    if (!id || !may(type, 'read_all')) return undefined;
    let request;
    const onEvent = (event) => (!event || event.rec_id === id) && latest.current();
    const start = () => {
      request = new AbortController();
      follow(`${type}.*`, onEvent, request.signal);
    };
    const onVisible = () => {
      request?.abort();
      if (document.visibilityState !== 'visible') return;
      latest.current();
      start();
    };
    if (document.visibilityState === 'visible') start();
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      request?.abort();
    };
  }, [type, id]);
}
