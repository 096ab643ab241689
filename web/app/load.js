import { useCallback, useEffect, useRef, useState } from './lib.js';
import { useLanguage } from './i18n.js';
import { onFrame } from './stream.js';

/** Whether an error may be gone when the connection returns. */
const isTemporary = (error) => Boolean(error) && (error.status === 0 || error.status >= 500);

/**
 * Calls fn when the network returns or the stream connects again.
 * @param {boolean} wanted false: not now
 * @param {() => void} fn
 */
export function useReconnected(wanted, fn) {
  useEffect(() => {
    if (!wanted) return undefined;
    const stop = onFrame((frame) => frame.event === 'open' && fn());
    window.addEventListener('online', fn);
    return () => {
      stop();
      window.removeEventListener('online', fn);
    };
  }, [wanted]);
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
        (error) => settle((was) => ({ data: was.data, error, loading: false })),
      );
    return () => latest.current++;
  }, [...inputs, lang, attempt]);
  const reload = useCallback(() => setAttempt((n) => n + 1), []);
  const setData = useCallback((next) => {
    setState((was) => ({ ...was, data: typeof next === 'function' ? next(was.data) : next }));
    if (loading.current) reload(); // The load in progress may return older data.
  }, []);
  useReconnected(isTemporary(state.error), reload);
  return { ...state, reload, setData };
}
