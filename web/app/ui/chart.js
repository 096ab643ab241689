import { html } from '../lib.js';
import { number } from '../format.js';

/**
 * The parts of a whole as one bar with a legend; each part links to the records it counts.
 * @param {{label: string, parts: {key: string, text: string, n: number, href?: string}[]}} props
 */
export function ShareBar({ label, parts }) {
  const whole = parts.reduce((sum, part) => sum + part.n, 0);
  let x = 0;
  return html`<div class="shares">
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${label}>
      ${parts.filter((part) => part.n > 0).map((part) => {
        const width = (100 * part.n) / whole;
        const shown = Math.max(0.2, width - 0.35); // leaves a gap to the next part
        const rect = html`<rect key=${part.key} class=${`share ${part.key}`} x=${x} y="0" width=${shown} height="4" />`;
        x += width;
        return rect;
      })}
    </svg>
    <ul>${parts.map((part) => html`<li key=${part.key}><span class=${`dot ${part.key}`}></span>
      ${part.href ? html`<a href=${part.href}>${part.text}</a>` : html`<span>${part.text}</span>`}<span class="num">${number(part.n)}</span>
    </li>`)}</ul>
  </div>`;
}

const STEPS = [1, 2, 5, 10];
const MOST_LINES = 4; // horizontal lines above zero

/** The distance of the horizontal lines: 1, 2 or 5 times a power of ten, so that few lines reach the highest value. */
function lineStep(highest) {
  const least = Math.max(1, highest / MOST_LINES);
  const power = 10 ** Math.floor(Math.log10(least));
  return power * STEPS.find((step) => step * power >= least);
}

/**
 * A small series over time as columns, with the same numbers in a table for screen readers. Style sheets draw it, so it
 * follows the theme and the width by itself; a narrow chart omits every other label.
 * @param {{label: string, points: [string, number][], height?: number}} props points: [label of the column, value]
 */
export function ColumnChart({ label, points, height = 150 }) {
  const highest = Math.max(4, ...points.map(([, value]) => value));
  const step = lineStep(highest);
  const top = Math.ceil(highest / step) * step;
  const lines = Array.from({ length: top / step + 1 }, (_, i) => i * step);
  const share = (value) => `${(100 * value) / top}%`;
  return html`<figure class="series">
    <div class="plot" aria-hidden="true" style=${{ height: `${height}px` }}>
      <div class="plot-lines">${lines.map((value) => html`<i key=${value} style=${{ bottom: share(value) }}>${number(value)}</i>`)}</div>
      <ol>${points.map(([name, value]) => html`<li key=${name} title=${`${name}: ${number(value)}`}>
        <b style=${{ height: share(value) }}></b><span>${name}</span>
      </li>`)}</ol>
    </div>
    <table class="sr"><caption>${label}</caption><tbody>
      ${points.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${number(value)}</td></tr>`)}
    </tbody></table>
  </figure>`;
}
