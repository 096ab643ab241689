import { html } from '../lib.js';
import { t, term } from '../i18n.js';
import { Badge } from '../ui/display.js';
import { Icon } from '../ui/icon.js';

/** The types of documents. */
export const TYPES = ['passport', 'identity_card', 'residence_permit', 'driving_licence', 'proof_of_address', 'other'];

const URGENCY = [['past_due', 'bad'], ['currently_due', 'warn'], ['expiring_soon', 'info']]; // with the tone of its badge

/** Returns requirements as rows, the most urgent first: {when, tone, code}. */
export const requirementsOf = (requirements) => URGENCY.flatMap(([when, tone]) => requirements[when]
  .map((code) => ({ when, tone, code })));

/** The name of a document's type. Other types are shown as they were given. */
export const documentName = (type) => (TYPES.includes(type) ? term('document', type) : type);

const REQUIREMENTS = ['identity_document', 'proof_of_address', 'enhanced_review', 'date_of_birth', 'nationality', 'address'];

/** The text of a requirement: a code of its own, or the document that must be replaced. */
export const requirementText = (code) => (REQUIREMENTS.includes(code) ? term('requirement', code) : documentName(code));

/** Requirements with their urgency. */
export const RequirementList = ({ rows, tight }) => html`<ul class=${`items${tight ? ' tight' : ''}`}>
  ${rows.map(({ when, tone, code }) => html`<li key=${when + code}>
    <span class="grow">${requirementText(code)}</span><${Badge} value=${t(`kyc.${when}`)} tone=${tone} />
  </li>`)}
</ul>`;

const STEPS = ['not_started', 'pending', 'in_review', 'verified'];
const OTHER_STATES = { action_required: 'in_review', rejected: 'in_review', expired: 'verified' }; // the step each belongs to

function Step({ step, i, at, status }) {
  const interrupted = i === at && status in OTHER_STATES;
  const done = i < at || status === 'verified';
  const state = interrupted ? 'off' : done ? 'past' : i === at ? 'now' : '';
  const mark = interrupted
    ? html`<${Icon} name="warning" size=${13} />`
    : done ? html`<${Icon} name="check" size=${12} />` : i + 1;
  return html`<li class=${state} aria-current=${i === at ? 'step' : undefined}>
    <span class="step-dot">${mark}</span>
    <span class="step-name">${interrupted ? html`<${Badge} group="kyc_status" value=${status} />` : term('kyc_step', step)}</span>
  </li>`;
}

/** The steps of the verification with the present one marked. */
export function Steps({ status, vertical }) {
  const at = STEPS.indexOf(OTHER_STATES[status] ?? status);
  return html`<ol class=${`steps${vertical ? ' down' : ''}`} aria-label=${t('kyc.steps')}>
    ${STEPS.map((step, i) => html`<${Step} key=${step} step=${step} i=${i} at=${at} status=${status} />`)}
  </ol>`;
}
