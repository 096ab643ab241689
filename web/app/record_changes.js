import { useEffect, useRef, useState } from './lib.js';
import { api, send } from './api.js';
import { CALL, may, mayCall } from './access.js';
import { frames } from './stream.js';

// Changes of the record or the list on the screen, from the change feed. Each visible tab that shows one holds one connection; a hidden
// tab holds none, and looks again when it is shown. Callers without read_all see only their own records, and need no feed for them.

const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
const COUNT_MS = 500; // Records that arrive together are counted once.

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

/** Calls onEvent with events of some types, see follow, while the component is shown and the screen is about something. */
function useFeed(types, about, onEvent) {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    if (!about || !may(types.split('.')[0], 'read_all') || !mayCall(CALL.events)) return undefined;
    let request;
    const start = () => {
      request = new AbortController();
      follow(types, (event) => latest.current(event), request.signal);
    };
    const onVisible = () => {
      request?.abort();
      if (document.visibilityState !== 'visible') return;
      latest.current(null);
      start();
    };
    if (document.visibilityState === 'visible') start();
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      request?.abort();
    };
  }, [types, about]);
}

/**
 * Calls fn when a record may have changed while the component is shown.
 * @param {string} type the record type, such as customers
 * @param {string} id
 * @param {() => void} fn
 */
export function useRecordChanges(type, id, fn) {
  useFeed(`${type}.*`, id, (event) => (!event || event.rec_id === id) && fn());
}

/**
 * Returns how many rows a list has now beyond those that it had when it was loaded.
 * @param {ReturnType<import('./list.js').useList>} list
 * @param {string} types the events that may add a row, such as customers.created
 */
export function useNewRows(list, types) {
  const [arrived, setArrived] = useState({ n: 0 });
  const timer = useRef();
  const begun = useRef(false);
  const latest = useRef();
  latest.current = list.data;
  async function count() {
    const { data: before, path, selected } = list;
    if (!before) return;
    const page = await api.get(path, { ...selected, limit: 1 }).catch(() => null); // The next event counts again.
    if (page) setArrived({ since: before, n: page.total - before.total });
  }
  useFeed(types, list.path, (event) => {
    const isFirst = !event && !begun.current; // The list has just been loaded.
    begun.current = true;
    if (isFirst) return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => latest.current === list.data && count(), COUNT_MS);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return arrived.since === list.data ? Math.max(0, arrived.n) : 0;
}
