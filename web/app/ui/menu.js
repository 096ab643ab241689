import { html, useEffect, useId, useRef, useState } from '../lib.js';
import { Icon } from './icon.js';

/**
 * A button that shows a panel below it. Escape, a click elsewhere and leaving it with the keyboard close the panel.
 * @param {{label: string, icon: string, children: (close: () => void) => any}} props children: makes the panel while it is open
 */
export function Menu({ label, icon, children }) {
  const [open, setOpen] = useState(false);
  const place = useRef();
  const id = useId();
  const close = () => {
    setOpen(false);
    place.current?.querySelector('button').focus();
  };
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event) => !place.current.contains(event.target) && setOpen(false);
    const onKeyDown = (event) => event.key === 'Escape' && close();
    addEventListener('keydown', onKeyDown);
    addEventListener('pointerdown', outside);
    addEventListener('focusin', outside);
    return () => {
      removeEventListener('keydown', onKeyDown);
      removeEventListener('pointerdown', outside);
      removeEventListener('focusin', outside);
    };
  }, [open]);
  return html`<div class="menu" ref=${place}>
    <button class="quiet small" aria-expanded=${open} aria-controls=${id} onClick=${() => setOpen(!open)}>
      <${Icon} name=${icon} size=${14} />${label}<${Icon} name="down" size=${10} />
    </button>
    <div id=${id} class="menu-panel" role="group" aria-label=${label} hidden=${!open}>${open && children(close)}</div>
  </div>`;
}
