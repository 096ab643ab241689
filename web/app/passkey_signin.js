// Sign-in with a passkey and without a password: by a button, or from the browser's suggestions in the sign-in form.
import { useEffect, useRef } from './lib.js';
import { beginPasskeySignIn, completeSignIn } from './auth.js';
import { getPasskey, supportsAutofill } from './passkeys.js';

const RENEW_EARLY_MS = 15_000; // A challenge is replaced before it expires.

/** Answers one challenge. */
async function answer(step, how) {
  await completeSignIn(step, { passkey: await getPasskey(step.options, how) });
}

/**
 * Offers the user's passkeys in the sign-in form until one is chosen or the signal ends it. A rejected passkey is
 * reported; then the offer begins again.
 */
async function offer(stop, report) {
  while (!stop.aborted) {
    const step = await beginPasskeySignIn();
    const round = new AbortController();
    const end = () => round.abort();
    const timer = setTimeout(end, step.expires_in * 1000 - RENEW_EARLY_MS);
    stop.addEventListener('abort', end);
    try {
      if (!stop.aborted) return void await answer(step, { mediation: 'conditional', signal: round.signal });
    } catch (error) {
      if (error.code?.startsWith('passkey.')) return undefined; // Nobody has asked for one: the button says why it fails.
      if (error.name !== 'AbortError') report(error);
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
    }
  }
  return undefined;
}

/**
 * Offers passkeys while the sign-in form is shown. A browser has one request for passkeys at a time: the returned
 * function pauses the offer, asks for a passkey at once, and resumes the offer when that fails.
 * @param {boolean} enabled whether the server accepts passkeys
 * @param {(error: any) => void} report receives the error of a passkey chosen in the form
 */
export function usePasskeySignIn(enabled, report) {
  const running = useRef(null); // {stop, done}: the offer that runs
  const latest = useRef(report);
  latest.current = report;
  async function start() {
    const stop = new AbortController();
    const mine = { stop, done: Promise.resolve() };
    running.current = mine;
    if (!(await supportsAutofill()) || stop.signal.aborted) return;
    mine.done = offer(stop.signal, (error) => latest.current(error)).catch(() => {}); // The button reports why it cannot begin.
  }
  async function end() {
    running.current?.stop.abort();
    await running.current?.done;
  }
  useEffect(() => {
    if (!enabled) return undefined;
    start();
    return () => running.current.stop.abort();
  }, [enabled]);
  return async () => {
    await end();
    try {
      const step = await beginPasskeySignIn();
      await answer(step);
    } catch (error) {
      start();
      throw error;
    }
  };
}
