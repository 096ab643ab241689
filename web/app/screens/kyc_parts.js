import { html } from '../lib.js';
import { t, term } from '../i18n.js';
import { Badge } from '../ui/data.js';
import { Icon } from '../ui/icon.js';
import { TYPES } from './kyc_forms.js';

/** When something is needed, the most pressing first, with the tone it is shown in. */
export const WHEN = [['past_due', 'bad'], ['currently_due', 'warn'], ['expiring_soon', 'info']];

const ORDER = ['not_started', 'pending', 'in_review', 'verified'];
const RIGHT = { action_required: 'in_review', rejected: 'in_review', expired: 'verified' }; // Off the way: what was reached before.

/**
 * The way to verification as steps, with the present one marked. A state beside the way is named where it left it.
 * @param {{status: string, down?: boolean}} props down: the steps stand below each other
 */
export function Steps({ status, down }) {
  const off = RIGHT[status];
  const at = ORDER.indexOf(off ?? status);
  const done = (i) => i < at || status === 'verified';
  return html`<ol class=${`steps${down ? ' down' : ''}`} aria-label=${t('kyc.way')}>${ORDER.map((step, i) => html`<li key=${step} class=${i === at && off ? 'off' : done(i) ? 'past' : i === at ? 'now' : ''} aria-current=${i === at ? 'step' : undefined}>
    <span class="step-dot">${i === at && off ? html`<${Icon} name="warning" size=${13} />` : done(i) ? html`<${Icon} name="check" size=${12} />` : i + 1}</span>
    <span class="step-name">${i === at && off ? html`<${Badge} group="kyc_status" value=${status} />` : term('kyc_step', step)}</span></li>`)}</ol>`;
}

/** What is needed is named by a code of its own, or by the document that must be replaced. */
export const needed = (code) => (TYPES.includes(code) ? term('document', code) : term('requirement', code));
