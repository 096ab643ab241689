import { useCallback, useEffect, useRef, useState } from './lib.js';
import { useLanguage } from './i18n.js';
import { onFrame } from './stream.js';

/**
 * Loads what a component shows. What was loaded before stays visible while it is loaded again, and a change of the
 * language loads again, because the server words part of the data. What failed because the server was away is tried
 * again as soon as it is back.
 * @param {() => Promise<any>} fetcher
 * @param {any[]} inputs what the fetcher depends on
 * @returns {{data: any, error: Error|null, loading: boolean, reload: () => void, setData: (data: any) => void}}
 */
export function useLoad(fetcher, inputs = []) {
  const lang = useLanguage();
  const [state, setState] = useState({ data: undefined, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  const underWay = useRef(false);
  useEffect(() => {
    const mine = ++latest.current;
    underWay.current = true;
    const settle = (next) => {
      if (mine !== latest.current) return;
      underWay.current = false;
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
  }, [...inputs, lang, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const setData = useCallback((next) => {
    setState((was) => ({ ...was, data: typeof next === 'function' ? next(was.data) : next }));
    if (underWay.current) reload(); // What is on its way may be older than what was just learnt.
  }, []);
  const temporary = state.error && (state.error.status === 0 || state.error.status >= 500);
  useEffect(() => (temporary ? onFrame((frame) => frame.event === 'open' && reload()) : undefined), [temporary]);
  return { ...state, reload, setData };
}
