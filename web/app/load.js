import { useCallback, useEffect, useRef, useState } from './lib.js';
import { useLanguage } from './i18n.js';

/**
 * Loads what a component shows. What was loaded before stays visible while it is loaded again, and a change of the
 * language loads again, because the server words part of the data.
 * @param {() => Promise<any>} fetcher
 * @param {any[]} inputs what the fetcher depends on
 * @returns {{data: any, error: Error|null, loading: boolean, reload: () => void, setData: (data: any) => void}}
 */
export function useLoad(fetcher, inputs = []) {
  const lang = useLanguage();
  const [state, setState] = useState({ data: undefined, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    const mine = ++latest.current;
    setState((was) => ({ ...was, loading: true }));
    Promise.resolve()
      .then(fetcher)
      .then(
        (data) => mine === latest.current && setState({ data, error: null, loading: false }),
        (error) => mine === latest.current && setState((was) => ({ data: was.data, error, loading: false })),
      );
    return () => latest.current++;
  }, [...inputs, lang, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const setData = useCallback((next) => setState((was) => ({ ...was, data: typeof next === 'function' ? next(was.data) : next })), []);
  return { ...state, reload, setData };
}
