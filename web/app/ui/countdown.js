import { useEffect, useState } from '../lib.js';

/** Counts seconds down to zero: [left, restart]. */
export function useCountdown(from = 0) {
  const [left, setLeft] = useState(from);
  useEffect(() => {
    if (left <= 0) return undefined;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return [left, setLeft];
}
