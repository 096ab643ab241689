import { createContext, useContext, useMemo } from './lib.js';
import { left, route, setLeftQuery, setQuery } from './router.js';
import { useStore } from './store.js';

/** The list that is shown beside a record: {path, own}; own: the address of the record has the filters of the list, too. */
export const Beside = createContext(null);

/**
 * The address of a screen: {path, query, set, beside}. That of a list beside a record is the one at which the list was left.
 * set changes parameters of the query.
 */
export function useAddress() {
  const pane = useContext(Beside);
  const here = useStore(route);
  const text = useStore(left, (all) => (pane ? all[pane.path]?.query ?? '' : ''));
  const kept = useMemo(() => new URLSearchParams(text), [text]);
  if (!pane) return { path: here.path, query: here.query, set: setQuery, beside: false };
  if (pane.own) return { path: pane.path, query: here.query, set: setQuery, beside: true };
  return { path: pane.path, query: kept, set: (changes) => setLeftQuery(pane.path, changes), beside: true };
}
