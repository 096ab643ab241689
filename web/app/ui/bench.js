import { useEffect, useState } from '../lib.js';
import { go } from '../router.js';
import { useKeys } from './keys.js';

const WIDE = matchMedia('(min-width: 75rem)');

/** Whether a record and its list have room beside each other. */
export function useWide() {
  const [wide, setWide] = useState(WIDE.matches);
  useEffect(() => {
    const change = () => setWide(WIDE.matches);
    change();
    WIDE.addEventListener('change', change);
    return () => WIDE.removeEventListener('change', change);
  }, []);
  return wide;
}

/**
 * The keys J and K walk through the rows of the list in a box. While a record is open they open the next one; otherwise they move the
 * focus, and Enter opens.
 * @param {{current: HTMLElement}} box
 * @param {boolean} open whether a record of the list is open
 */
export function useWalk(box, open) {
  const step = (by) => () => {
    const links = [...box.current.querySelectorAll('.bench-list .row-link')];
    const at = links.findIndex((one) => (open ? one.ariaCurrent === 'page' : one === document.activeElement));
    const next = links[at < 0 ? 0 : at + by];
    if (!next) return;
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
    if (open) go(next.pathname + next.search);
  };
  const walks = () => box.current?.querySelector('.bench-list .row-link') && !box.current.querySelector('[data-keys]');
  useKeys({ j: () => walks() && step(1)(), k: () => walks() && step(-1)() });
}
