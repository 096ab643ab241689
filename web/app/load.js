import { useCallback, useEffect, useRef, useState } from './lib.js';
import { useLanguage } from './i18n.js';
import { onFrame } from './stream.js';

/** Whether an error may be gone when the connection returns. */
const isTemporary = (error) => Boolean(error) && (error.status === 0 || error.status >= 500);

let returns = 0; // how often the network has returned or the stream has connected
const waiting = new Set();

function returned() {
  returns++;
  waiting.forEach((fn) => fn());
}

onFrame((frame) => frame.event === 'open' && returned());
window.addEventListener('online', returned);

/** How often the connection has returned, for useReconnected. */
export const connections = () => returns;

/**
 * Calls fn when the network returns or the stream connects again: at once, if it did so since the attempt that has failed.
 * @param {number|undefined} since what connections() was when the attempt began; undefined: fn is not wanted
 * @param {() => void} fn
 */
export function useReconnected(since, fn) {
  useEffect(() => {
    if (since === undefined) return undefined;
    if (since !== returns) fn();
    waiting.add(fn);
    return () => waiting.delete(fn);
  }, [since]);
}

/**
 * Loads the data of a component. The former data stays visible during a reload. A change of the language reloads,
 * because the server translates part of the data. A load that failed because the server was unavailable is repeated
 * when the connection returns.
 * @param {() => Promise<any>} fetcher
 * @param {any[]} inputs the values that the fetcher depends on
 * @returns {{data: any, error: Error|null, loading: boolean, reload: () => void, setData: (data: any) => void}}
 */
export function useLoad(fetcher, inputs = []) {
  const lang = useLanguage();
  const [state, setState] = useState({ data: undefined, error: null, loading: true });
  const [attempt, setAttempt] = useState(0);
  const latest = useRef(0);
  const loading = useRef(false);
  useEffect(() => {
    const mine = ++latest.current;
    const since = connections();
    loading.current = true;
    const settle = (next) => {
      if (mine !== latest.current) return;
      loading.current = false;
      setState(next);
    };
    setState((was) => ({ ...was, loading: true }));
    Promise.resolve()
      .then(fetcher)
      .then(
        (data) => settle({ data, error: null, loading: false }),
        (error) => settle((was) => ({ data: was.data, error, since, loading: false })),
      );
    return () => latest.current++;
  }, [...inputs, lang, attempt]);
  const reload = useCallback(() => setAttempt((n) => n + 1), []);
  const setData = useCallback((next) => {
    setState((was) => ({ ...was, data: typeof next === 'function' ? next(was.data) : next }));
    if (loading.current) reload(); // The load in progress may return older data.
  }, []);
  useReconnected(isTemporary(state.error) ? state.since : undefined, reload);
  return { data: state.data, error: state.error, loading: state.loading, reload, setData };
}
