import { html } from '../lib.js';
import { percent } from '../format.js';
import { t } from '../i18n.js';
import { Badge } from '../ui/display.js';
import { Card } from '../ui/page.js';

const TONES = { open: 'warn', pending: 'info', dismissed: 'good', confirmed: 'bad', closed: 'none' };

export const HitStatus = ({ of }) => html`<${Badge} group="hit_status" value=${of.status} tone=${TONES[of.status]} />`;

/** The hits of a customer on sanctions lists, for the reviewer of their case. */
export const HitsOfCase = ({ hits }) => hits?.length > 0 && html`<${Card} title=${t('review.hits')}>
  <ul class="items">${hits.map((hit) => html`<li key=${hit.id}>
    <div class="grow two-lines">
      <a href=${`/screening/hits/${hit.id}`}><bdi>${hit.cause ? t(`screening.doubt.${hit.cause}`) : hit.entry_name}</bdi></a>
      ${!hit.cause && html`<span>${hit.list} · ${percent(hit.score, 1)} %</span>`}
    </div>
    <${HitStatus} of=${hit} />
  </li>`)}</ul>
<//>`;
