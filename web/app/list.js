import { useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { useAddress } from './address.js';
import { api } from './api.js';
import { useListSettings } from './list_settings.js';
import { useLoad } from './load.js';

const DEBOUNCE_MS = 250;

/**
 * Loads a list whose search, filters, order and page are kept in the address, so that it can be shared and revisited.
 * @param {string} path
 * @param {{filters?: string[], sort?: string, limit?: number, fixed?: object, search?: (text: string, field: string) => object}} options
 *   filters: query parameters that become search.<name>; search: returns the parameters for the text typed; limit: the rows
 *   of a page until the user chooses another number.
 */
export function useList(path, { filters = [], sort = '', limit: usual = 20, fixed = {}, search } = {}) {
  const { query, path: screen, set } = useAddress();
  const { limit, columns, ...settings } = useListSettings(screen, usual);
  const state = {
    q: query.get('q') ?? '', in: query.get('in') ?? '', sort: query.get('sort') ?? sort,
    offset: Math.max(0, Number(query.get('offset')) || 0), ...Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ''])),
  };
  const selected = { sort: state.sort, ...fixed };
  for (const name of filters) selected[`search.${name}`] = state[name];
  if (search && state.q.trim()) {
    Object.assign(selected, search(state.q.trim(), state.in));
    if (selected.q && !query.get('sort')) selected.sort = ''; // by relevance
  }
  const params = { limit, offset: state.offset, ...selected };
  const load = useLoad(() => api.get(path, params), [path, JSON.stringify(params)]);
  return {
    ...load, state, limit, columns, ...settings,
    path, selected, // the same rows on all pages, such as for an export
    filtered: Boolean(state.q || filters.some((name) => state[name])),
    set: (changes) => set({ offset: '', ...changes }),
    move: (offset, { replace = false } = {}) => set({ offset: offset || '' }, { replace }),
    clear: () => set(Object.fromEntries(['q', 'offset', ...filters].map((name) => [name, '']))),
  };
}

/** The value of a text field that is reported only after the user stops typing (debounce). */
export function useDebounced(value, report) {
  const [typed, setTyped] = useState(value);
  const timer = useRef();
  useLayoutEffect(() => { // A later effect could undo what was typed since.
    if (!timer.current) setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  function type(next) {
    setTyped(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = null;
      report(next);
    }, DEBOUNCE_MS);
  }
  return [typed, type];
}

/** A search pattern that finds the text anywhere; a pattern with wildcards stays as it is. Quotation marks keep commas. */
export const containing = (text) => `"${(text.includes('*') ? text : `*${text}*`).replaceAll('"', '""')}"`;

/** The parameters that search a record by its words, as the finder does; with a field, by a part of that field. */
export const byWords = (text, field) => (field ? { [`search.${field}`]: containing(text) } : { q: text.slice(0, 200) });
