import { html } from '../lib.js';
import { markedPieces } from '../marked_names.js';
import { Dash } from './display.js';

/**
 * A name with the letters that another name has, too.
 * @param {{name: string, parts: [string, string][]}} props parts: [part of the name, part of the other name]
 */
export const MarkedName = ({ name, parts }) => html`<bdi class="marked-name">${markedPieces(name, parts).map(({ text, same }, i) => (same
  ? html`<mark key=${i}>${text}</mark>`
  : html`<span key=${i}>${text}</span>`))}</bdi>`;

/**
 * Two records side by side.
 * @param {{caption: string, heads: [any, any], rows: ([string, any, any, boolean?]|false)[]}} props
 *   rows: [label, one side, the other side, whether both agree]; rows without a value on either side are left out
 */
export const Compare = ({ caption, heads, rows }) => html`<table class="compare" aria-label=${caption}>
  <thead><tr><td></td><th scope="col">${heads[0]}</th><th scope="col">${heads[1]}</th></tr></thead>
  <tbody>${rows.filter((row) => row && (row[1] || row[2])).map(([label, one, other, agrees]) => html`
    <tr key=${label} class=${agrees ? 'agrees' : ''}>
      <th scope="row">${label}</th><td>${one || html`<${Dash} />`}</td><td>${other || html`<${Dash} />`}</td>
    </tr>`)}</tbody>
</table>`;
