import { html, useEffect, useRef } from '../lib.js';
import { number } from '../format.js';

/**
 * Shares of a whole as one bar with a legend below; each part links to what it counts.
 * @param {{label: string, parts: {key: string, text: string, n: number, href?: string}[]}} props
 */
export function ShareBar({ label, parts }) {
  const whole = parts.reduce((sum, part) => sum + part.n, 0);
  let x = 0;
  return html`<div class="shares">
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${label}>
      ${parts.filter((part) => part.n > 0).map((part) => {
        const width = (100 * part.n) / whole;
        const rect = html`<rect key=${part.key} class=${`share ${part.key}`} x=${x} y="0" width=${Math.max(0.2, width - 0.35)} height="4" />`;
        x += width;
        return rect;
      })}
    </svg>
    <ul>${parts.map((part) => html`<li key=${part.key}><span class=${`dot ${part.key}`}></span>
      ${part.href ? html`<a href=${part.href}>${part.text}</a>` : html`<span>${part.text}</span>`}<span class="num">${number(part.n)}</span>
    </li>`)}</ul>
  </div>`;
}

const ROOM = 26; // pixels for a name below a column; with less, every other one is left out
let plot; // The plotting library, fetched once the first chart is shown.

/**
 * A small series over time as columns. The same numbers are in a table for those who do not see it.
 * @param {{label: string, points: [string, number][], height?: number}} props points: [name of the step, value]
 */
export function Series({ label, points, height = 150 }) {
  const place = useRef();
  useEffect(() => {
    const element = place.current;
    let chart;
    let gone = false;
    (async () => {
      plot ??= (await import('../../vendor/uplot.mjs')).default;
      if (!gone) chart = draw(element, points, height);
    })();
    const fit = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height }));
    fit.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => chart?.redraw(false);
    scheme.addEventListener('change', redraw);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      gone = true;
      fit.disconnect();
      theme.disconnect();
      scheme.removeEventListener('change', redraw);
      chart?.destroy();
    };
  }, [JSON.stringify(points), height]);
  return html`<figure class="series">
    <div ref=${place} aria-hidden="true" style=${{ height: `${height}px` }}></div>
    <table class="sr"><caption>${label}</caption><tbody>${points.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${number(value)}</td></tr>`)}</tbody></table>
  </figure>`;
}

/** The value a colour token has now: a canvas knows no CSS variables. */
function colour(element, name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function draw(element, points, height) {
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: () => colour(element, '--ink-2'), font, ticks: { show: false } };
  return new plot({
    width: element.clientWidth, height, legend: { show: false }, cursor: { show: false }, padding: [8, 4, 0, 0],
    scales: { x: { time: false, range: (_, min, max) => [min - 0.6, max + 0.6] }, y: { range: (_, min, max) => [0, Math.max(4, max * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, splits: points.map((_, i) => i), values: (u, at) => at.map((i) => ((u.bbox?.width / devicePixelRatio || element.clientWidth) / points.length < ROOM && i % 2 ? '' : points[i]?.[0] ?? '')), size: 26, gap: 6 },
      { ...axis, grid: { stroke: () => colour(element, '--line'), width: 1 }, size: 34, values: (_, at) => at.map((n) => (Number.isInteger(n) ? number(n) : '')) },
    ],
    series: [{}, { fill: () => colour(element, '--accent'), stroke: 'transparent', paths: plot.paths.bars({ size: [0.55, 34], radius: 0.15 }), points: { show: false } }],
  }, [points.map((_, i) => i), points.map(([, value]) => value)], element);
}
