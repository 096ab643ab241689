import { html } from '../lib.js';
import { t, term } from '../i18n.js';
import { go } from '../router.js';
import { initials } from '../people.js';
import { personaName } from './persona_form.js';

const WIDTH = 640;
const HEIGHT = 400;

/**
 * Returns the positions of the linked personas: on an ellipse around the centre. No position is straight below the
 * centre, because the name of the persona in the centre stands there.
 */
export function positions(count) {
  const first = -Math.PI / 2 + (count % 2 ? 0 : Math.PI / count);
  return Array.from({ length: count }, (_, i) => {
    const angle = first + (2 * Math.PI * i) / count;
    return { x: WIDTH / 2 + Math.cos(angle) * 240, y: HEIGHT / 2 + Math.sin(angle) * 138 };
  });
}

const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function Node({ x, y, persona, centre }) {
  const above = !centre && y < HEIGHT / 2 - 30;
  const name = personaName(persona) || '…';
  const open = () => !centre && go(`/personas/${persona.id}`);
  return html`<g class=${centre ? 'node centre' : 'node'} onClick=${open}>
    <circle cx=${x} cy=${y} r=${centre ? 32 : 25} />
    <text x=${x} y=${y + 5} class="letters">${initials(name)}</text>
    <text x=${x} y=${above ? y - 34 : y + (centre ? 52 : 43)}>${clip(name, 22)}</text>
  </g>`;
}

/**
 * A persona in the centre and the linked personas around it, with the relation on each line. The list below the drawing
 * contains the same in words, so the drawing is a single image to screen readers.
 */
export function PersonaGraph({ persona, links }) {
  const at = positions(links.length);
  const cx = WIDTH / 2;
  const cy = HEIGHT / 2;
  const label = t('personas.graph', { name: personaName(persona), n: links.length });
  return html`<div class="graph" tabindex="0" role="group" aria-label=${t('personas.links')}>
  <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
    ${links.map((link, i) => html`<line key=${`l${link.id}`} x1=${cx} y1=${cy} x2=${at[i].x} y2=${at[i].y} />`)}
    ${links.map((link, i) => {
      const x = cx + (at[i].x - cx) * 0.56;
      const y = cy + (at[i].y - cy) * 0.56;
      const text = term('relation', link.relation);
      const width = text.length * 6.6 + 16;
      return html`<g key=${`t${link.id}`} class="relation">
        <rect x=${x - width / 2} y=${y - 11} width=${width} height="22" rx="11" /><text x=${x} y=${y + 4}>${text}</text>
      </g>`;
    })}
    ${links.map((link, i) => html`<${Node} key=${link.id} x=${at[i].x} y=${at[i].y} persona=${link.persona} />`)}
    <${Node} x=${cx} y=${cy} persona=${persona} centre />
  </svg>
  </div>`;
}
