// Refreshes tokens for all pages. A refresh invalidates the old refresh token, and using it after 20 seconds ends the
// session. A page that is reloaded at that moment would lose the answer, and with it the session. This worker outlives
// the page. It keeps the answer until the next refresh, and returns it to every page that sends the same old token. Such a
// page may come later than the one that saved the answer: browsers copy localStorage to the other tabs with a delay.
const CACHE = 'kontor.refresh';
const pending = new Map(); // old refresh token → promise of the answer

self.addEventListener('install', () => self.skipWaiting());

self.addEventListener('message', (event) => {
  const { token, headers } = event.data;
  const [port] = event.ports;
  if (!pending.has(token)) pending.set(token, refresh(token, headers).finally(() => pending.delete(token)));
  event.waitUntil(pending.get(token).then((answer) => port.postMessage(answer), () => port.postMessage(null)));
});

async function refresh(token, headers) {
  const key = await cacheKey(token);
  const kept = await caches.match(key, { cacheName: CACHE });
  if (kept) return kept.json();
  const response = await send(token, headers);
  const answer = { status: response.status, headers: [...response.headers], body: await response.text(), at: Date.now() };
  if (response.ok) {
    await caches.delete(CACHE); // All tabs have the tokens of the earlier answer by now.
    const cache = await caches.open(CACHE);
    await cache.put(key, new Response(JSON.stringify(answer)));
  }
  return answer;
}

/** Sends a refresh token, once more if the answer is lost: for 20 seconds, the service answers it again with the same tokens. */
async function send(token, headers) {
  const attempt = () => fetch('/v1/token/refresh', {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ refresh_token: token }),
    cache: 'no-store',
    signal: AbortSignal.timeout(8_000),
  });
  return attempt().catch(attempt);
}

/** Returns the cache key of an answer: a hash, so that the token itself is not stored. */
async function cacheKey(token) {
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return `/v1/token/refresh?${[...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
