import { useEffect, useState } from './lib.js';

/**
 * Makes an observable value.
 * @template T
 * @param {T} initial
 */
export function store(initial) {
  let value = initial;
  const watchers = new Set();
  return {
    get: () => value,
    /** Sets the value, or derives it from the present one, and calls the watchers when it changed. */
    set(next) {
      const wanted = typeof next === 'function' ? next(value) : next;
      if (Object.is(wanted, value)) return;
      value = wanted;
      for (const watch of [...watchers]) watch(value);
    },
    /** Calls watch after each change; returns the function that stops that. */
    watch(watch) {
      watchers.add(watch);
      return () => watchers.delete(watch);
    },
  };
}

/**
 * Reads a store in a component, and renders the component again when the picked part changes.
 * @param {ReturnType<typeof store>} source
 * @param {(value: any) => any} [pick]
 */
export function useStore(source, pick = (value) => value) {
  const [, rerender] = useState(0);
  const picked = pick(source.get());
  useEffect(() => {
    let last = picked;
    const compare = (value) => {
      const next = pick(value);
      if (Object.is(next, last)) return;
      last = next;
      rerender((n) => n + 1);
    };
    compare(source.get()); // It may have changed between rendering and this effect.
    return source.watch(compare);
  }, [source]);
  return picked;
}
