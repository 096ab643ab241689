// Asks for a new pair of tokens through the worker that outlives the page (session-worker.js). Where there are no
// workers (plain http on a foreign host, a private window of some browsers) the page asks itself.
const WORKER = '/session-worker.js';
const SCOPE = '/session-worker/'; // No page lies there: the worker is to be asked, not to stand between pages and server.
const START_MS = 5_000; // A worker that has not started by then is gone without.
const ANSWER_MS = 60_000;

let started = null;

/** Starts the worker, so that it is there when it is needed. */
export function startWorker() {
  started ??= start().catch(() => null);
  return started;
}

async function start() {
  if (!navigator.serviceWorker || !window.caches || !crypto.subtle) return null;
  const registration = await navigator.serviceWorker.register(WORKER, { scope: SCOPE });
  if (registration.active) return registration.active;
  const coming = registration.installing ?? registration.waiting;
  return new Promise((done) => {
    const look = () => {
      if (coming.state === 'activated') done(coming);
      if (coming.state === 'redundant') done(null);
    };
    coming.addEventListener('statechange', look);
    setTimeout(() => done(null), START_MS);
    look();
  });
}

/**
 * Exchanges a refresh token.
 * @param {string} token
 * @param {Record<string, string>} headers
 * @returns {Promise<{answer: Response, at: number}>} at: when the answer came, in the browser's time
 */
export async function exchange(token, headers) {
  const worker = await startWorker();
  if (worker) return throughWorker(worker, token, headers);
  const answer = await fetch('/v1/token/refresh', {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ refresh_token: token }),
    keepalive: true, // The answer is worth a session: it should arrive even when the page is being left.
  });
  return { answer, at: Date.now() };
}

function throughWorker(worker, token, headers) {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    // Once the worker was asked, asking the server without it could show a dead token: rather fail and try again.
    const fail = () => reject(new TypeError('the refresh was not answered'));
    const timer = setTimeout(fail, ANSWER_MS);
    port1.onmessage = ({ data }) => {
      clearTimeout(timer);
      if (data) resolve({ answer: new Response(data.body, { status: data.status, headers: data.headers }), at: data.at });
      else fail();
    };
    worker.postMessage({ token, headers }, [port2]);
  });
}

/** Forgets the answer that the worker keeps, once it is kept elsewhere or the session is over. */
export function forgetExchange() {
  window.caches?.delete('kontor.refresh').catch(() => {}); // What stays is deleted with the next answer.
}
