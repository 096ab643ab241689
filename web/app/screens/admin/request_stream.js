import { useEffect } from '../../lib.js';
import { queryString } from '../../api.js';
import { language } from '../../i18n.js';
import { deviceName, freshToken } from '../../session.js';
import { frames } from '../../stream.js';

const PAUSE_MS = 2_000; // before the next attempt
const SILENCE_MS = 90_000; // the connection is dead

/** Reads the stream of requests once, after the frame with the number last. */
async function readOnce(query, last, stop, onFrame) {
  const request = new AbortController();
  const abort = () => request.abort();
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(abort, SILENCE_MS);
  };
  stop.addEventListener('abort', abort);
  try {
    const headers = {
      Accept: 'text/event-stream', Authorization: `Bearer ${await freshToken()}`, 'Accept-Language': language.get(),
      'X-Device-ID': deviceName(), ...(last && { 'Last-Event-ID': last }),
    };
    alive();
    const response = await fetch(`/v1/requests${query}`, { headers, signal: request.signal, cache: 'no-store' });
    if (!response.ok) return;
    for await (const frame of frames(response.body, alive)) onFrame(frame);
  } catch {
    // The connection broke; the next attempt resumes after the last frame.
  } finally {
    clearTimeout(watchdog);
    stop.removeEventListener('abort', abort);
    request.abort();
  }
}

/**
 * Calls onRequest for each new request that meets the searches, while wanted. It calls onOpen when it begins: requests may have
 * come before.
 * @param {boolean} wanted
 * @param {object} searches query parameters of the list
 * @param {(request: object) => void} onRequest
 * @param {() => void} onOpen
 */
export function useRequestStream(wanted, searches, onRequest, onOpen) {
  const query = queryString(searches);
  useEffect(() => {
    if (!wanted) return undefined;
    const stop = new AbortController();
    (async () => {
      for (let last = ''; !stop.signal.aborted;) {
        await readOnce(query, last, stop.signal, (frame) => {
          last = frame.id ?? last;
          if (stop.signal.aborted) return;
          if (frame.event === 'request') onRequest(frame.data);
          if (frame.event === 'open') onOpen();
        });
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    })();
    return () => stop.abort();
  }, [wanted, query]);
}
