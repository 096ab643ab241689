// Exchanges refresh tokens through a service worker that outlives the page (session_worker.js). Without service workers
// (plain http on another host, private windows of some browsers) the page sends the request itself.
const WORKER = '/session-worker.js';
const SCOPE = '/session-worker/'; // No page lies in this scope: the worker must not intercept the console's requests.
const START_MS = 5_000; // The page proceeds without a worker that has not started by then.
const ANSWER_MS = 60_000;

let started = null;

/** Starts the worker, so that it runs before the first refresh. */
export function startWorker() {
  started ??= start().catch(() => null);
  return started;
}

async function start() {
  if (!navigator.serviceWorker || !window.caches || !crypto.subtle) return null;
  const registration = await navigator.serviceWorker.register(WORKER, { scope: SCOPE });
  if (registration.active) return registration.active;
  const worker = registration.installing ?? registration.waiting;
  return new Promise((resolve) => {
    const check = () => {
      if (worker.state === 'activated') resolve(worker);
      if (worker.state === 'redundant') resolve(null);
    };
    worker.addEventListener('statechange', check);
    setTimeout(() => resolve(null), START_MS);
    check();
  });
}

/**
 * Exchanges a refresh token for new tokens.
 * @param {string} token
 * @param {Record<string, string>} headers
 * @returns {Promise<{response: Response, at: number}>} at: when the response arrived, by the browser's clock
 */
export async function exchangeToken(token, headers) {
  const worker = await startWorker();
  if (worker) return exchangeInWorker(worker, token, headers);
  const attempt = () => fetch('/v1/token/refresh', {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ refresh_token: token }),
    keepalive: true, // The response replaces the session's tokens, so the request must survive leaving the page.
    signal: AbortSignal.timeout(8_000),
  });
  const response = await attempt().catch(attempt); // A lost answer is repeated for 20 seconds.
  if (response.ok) forgetExchange(); // An answer that the worker kept is older.
  return { response, at: Date.now() };
}

function exchangeInWorker(worker, token, headers) {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    // The worker may have sent the token long ago. Sending it again would end the session, so this fails instead.
    const fail = () => reject(new TypeError('no answer to the token refresh'));
    const timer = setTimeout(fail, ANSWER_MS);
    port1.onmessage = ({ data }) => {
      clearTimeout(timer);
      if (data) resolve({ response: new Response(data.body, { status: data.status, headers: data.headers }), at: data.at });
      else fail();
    };
    worker.postMessage({ token, headers }, [port2]);
  });
}

/** Deletes the answer that the worker keeps, when its tokens are replaced without the worker or the session is over. */
export function forgetExchange() {
  window.caches?.delete('kontor.refresh').catch(() => {}); // The next answer replaces what could not be deleted.
}
