import { useEffect, useRef, useState } from './lib.js';
import { api } from './api.js';
import { useLoad } from './load.js';
import { route, setQuery } from './router.js';
import { useStore } from './store.js';

const TYPING_MS = 250;

/**
 * A list whose search, filters, order and page live in the address, so that it can be shared and gone back to.
 * @param {string} path
 * @param {{filters?: string[], sort?: string, limit?: number, fixed?: object, search?: (text: string, field: string) => object}} options
 *   filters: parameters of the address that become search.<name>; search: the text typed as further parameters.
 */
export function useList(path, { filters = [], sort = '', limit = 20, fixed = {}, search } = {}) {
  const { query } = useStore(route);
  const state = {
    q: query.get('q') ?? '', in: query.get('in') ?? '', sort: query.get('sort') ?? sort,
    offset: Math.max(0, Number(query.get('offset')) || 0), ...Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ''])),
  };
  const wanted = { limit, offset: state.offset, sort: state.sort, ...fixed };
  for (const name of filters) wanted[`search.${name}`] = state[name];
  if (search && state.q.trim()) Object.assign(wanted, search(state.q.trim(), state.in));
  const load = useLoad(() => api.get(path, wanted), [path, JSON.stringify(wanted)]);
  return {
    ...load, state, limit,
    filtered: Boolean(state.q || filters.some((name) => state[name])),
    set: (changes) => setQuery({ offset: '', ...changes }),
    move: (offset) => setQuery({ offset: offset || '' }, { replace: false }),
    clear: () => setQuery(Object.fromEntries(['q', 'offset', ...filters].map((name) => [name, '']))),
  };
}

/** A text field's value that is passed on only once the typing rests. */
export function useTyped(value, pass) {
  const [typed, setTyped] = useState(value);
  const timer = useRef();
  useEffect(() => {
    if (!timer.current) setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  function type(next) {
    setTyped(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = null;
      pass(next);
    }, TYPING_MS);
  }
  return [typed, type];
}

/** Wildcards around what was typed, unless it has some of its own. */
export const anywhere = (text) => (text.includes('*') ? text : `*${text}*`);
