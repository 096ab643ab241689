import { html, useMemo } from '../lib.js';

/** Returns the drawing commands of a picture's dark shapes. The picture itself is not inserted: it is a text. */
function shapesOf(svg) {
  const root = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  const isLight = (path) => path.getAttribute('fill') === '#fff'; // the background
  const dark = [...root.querySelectorAll('path')].filter((one) => !isLight(one));
  return { box: root.getAttribute('viewBox'), shapes: dark.map((one) => one.getAttribute('d')).join('') };
}

/**
 * A QR code that the server has drawn as SVG. It is dark on white in both themes, because not every camera reads it inverted.
 * @param {{svg: string, label: string}} props
 */
export function QrCode({ svg, label }) {
  const { box, shapes } = useMemo(() => shapesOf(svg), [svg]);
  return html`<svg class="qr" viewBox=${box} role="img" aria-label=${label} shape-rendering="crispEdges"><path d=${shapes} /></svg>`;
}
