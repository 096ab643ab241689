import { html, useEffect, useRef } from '../lib.js';
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

const MIN_LABEL_WIDTH = 26; // pixels; when columns are narrower, every other label is omitted
let Plot; // the plotting library, loaded with the first chart

/**
 * A small series over time as columns, with the same numbers in a table for screen readers.
 * @param {{label: string, points: [string, number][], height?: number}} props points: [label of the column, value]
 */
export function ColumnChart({ label, points, height = 150 }) {
  const place = useRef();
  useEffect(() => {
    const element = place.current;
    let chart;
    let gone = false;
    (async () => {
      Plot ??= (await import('../../vendor/uplot.mjs')).default;
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
    <table class="sr"><caption>${label}</caption><tbody>
      ${points.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${number(value)}</td></tr>`)}
    </tbody></table>
  </figure>`;
}

/** Returns the present value of a colour variable, because a canvas cannot use CSS variables. */
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
  const labels = (chart, at) => {
    const width = (chart.bbox?.width / devicePixelRatio || element.clientWidth) / points.length;
    return at.map((i) => (width < MIN_LABEL_WIDTH && i % 2 ? '' : points[i]?.[0] ?? ''));
  };
  const integers = (_, at) => at.map((n) => (Number.isInteger(n) ? number(n) : ''));
  const columns = {
    fill: () => colour(element, '--accent'), stroke: 'transparent', points: { show: false },
    paths: Plot.paths.bars({ size: [0.55, 34], radius: 0.15 }),
  };
  const options = {
    width: element.clientWidth, height, legend: { show: false }, cursor: { show: false }, padding: [8, 4, 0, 0],
    scales: {
      x: { time: false, range: (_, min, max) => [min - 0.6, max + 0.6] },
      y: { range: (_, min, max) => [0, Math.max(4, max * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, splits: points.map((_, i) => i), values: labels, size: 26, gap: 6 },
      { ...axis, grid: { stroke: () => colour(element, '--line'), width: 1 }, size: 34, values: integers },
    ],
    series: [{}, columns],
  };
  return new Plot(options, [points.map((_, i) => i), points.map(([, value]) => value)], element);
}
