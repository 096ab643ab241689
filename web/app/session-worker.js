// Refreshes tokens for all pages. A refresh kills the old refresh token, and showing a dead one ends the session: when a
// page is reloaded at that moment, nobody is there to keep the answer, and the session would be lost. This worker
// outlives the page. It keeps the answer until a page has it, and gives it to whoever comes with the same old token.
const STORE = 'kontor.refresh';
const underWay = new Map(); // old refresh token → promise of the answer

self.addEventListener('install', () => self.skipWaiting());

self.addEventListener('message', (event) => {
  const { token, headers } = event.data;
  const [port] = event.ports;
  if (!underWay.has(token)) underWay.set(token, refresh(token, headers).finally(() => underWay.delete(token)));
  event.waitUntil(underWay.get(token).then((answer) => port.postMessage(answer), () => port.postMessage(null)));
});

async function refresh(token, headers) {
  const key = await addressOf(token);
  const kept = await caches.match(key, { cacheName: STORE });
  if (kept) return kept.json();
  const answer = await fetch('/v1/token/refresh', {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ refresh_token: token }),
    cache: 'no-store',
  });
  const told = { status: answer.status, headers: [...answer.headers], body: await answer.text(), at: Date.now() };
  if (answer.ok) {
    await caches.delete(STORE); // Of the answers before this one, all pages live on.
    const store = await caches.open(STORE);
    await store.put(key, new Response(JSON.stringify(told)));
  }
  return told;
}

/** The name an answer is kept under: made of the token, but not the token. */
async function addressOf(token) {
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return `/v1/token/refresh?${[...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
