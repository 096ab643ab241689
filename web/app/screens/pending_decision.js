import { html } from '../lib.js';
import { api, ApiError } from '../api.js';
import { myId } from '../access.js';
import { dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { Notice, useAction } from '../ui/feedback.js';
import { Field, Form, useForm } from '../ui/form.js';
import { Facts } from '../ui/display.js';
import { Person } from '../ui/person.js';

/** The content of a proposed decision. */
const Proposal = ({ decision }) => html`<${Facts} list rows=${[
  [t('review.decision'), term('kyc_status', decision.kyc_status)],
  decision.verification_level !== 'none' && [t('customers.level'), term('verification_level', decision.verification_level)],
  [t('kyc.reason'), decision.reason],
  [t('review.told'), decision.customer_reason],
  [t('review.proposed_by'), html`<${Person} id=${decision.proposed_by} signIn /> · ${dateTime(decision.proposed_at)}`],
]} />`;

const CHOICES = { reject: 'refused', withdraw: 'withdrawn' };

/**
 * A decision that waits for a second person: they confirm or reject it, and its proposer can take it back.
 * @param {{kyc: any, etag: string, done?: (answer: any) => void, obstacle?: () => string,
 *   take?: (request: (options?: object) => Promise<any>, decision: object) => void}} props
 *   take: takes over the request that closes the decision, instead of sending it at once; obstacle: why it cannot be confirmed yet
 */
export function PendingDecision({ kyc, etag, done, take, obstacle }) {
  const decision = kyc.pending_decision;
  const path = `/v1/customers/${kyc.customer_id}/kyc/decisions/${decision.id}`;
  const mine = decision.proposed_by === myId();
  async function close(what, body) {
    const why = what === 'confirm' && obstacle?.();
    if (why) throw new ApiError({ status: 409, message: why, hint: '' });
    const request = (options) => api.post(`${path}/${what}`, body, { ifMatch: etag, ...options });
    if (take) take(request, { choice: CHOICES[what] ?? decision.kyc_status });
    else done(await request());
  }
  const form = useForm({ reason: '' }, ({ reason }) => close('reject', { reason }));
  const act = useAction((what) => close(what, {}), form.setProblem);
  return html`<${Form} form=${form} class="decision pending-decision">
    <p>${t(mine ? 'review.waits_mine' : 'review.waits')}</p>
    <${Proposal} decision=${decision} />
    ${decision.outdated_since && html`<${Notice} tone="bad" title=${t('review.outdated', { date: dateTime(decision.outdated_since) })}>
      ${t('review.outdated_hint')}
    <//>`}
    ${decision.changed_since && !decision.outdated_since && html`<${Notice} tone="warn"
      title=${t('review.changed_since', { date: dateTime(decision.changed_since) })}>
      ${decision.documents_added?.length > 0 && t('review.documents_added', { n: decision.documents_added.length })}
    <//>`}
    ${mine
      ? html`<div class="actions">
          <button type="button" class="quiet" disabled=${act.busy} onClick=${() => act.run('withdraw')}>${t('review.withdraw')}</button>
        </div>`
      : html`
        <div class="actions">
          <button type="button" class="confirm-decision" disabled=${act.busy || Boolean(decision.outdated_since)}
            onClick=${() => act.run('confirm')}>
            ${t('review.confirm')}
          </button>
        </div>
        <${Field} form=${form} name="reason" label=${t('review.refusal')} rows=${2} maxlength="1000" />
        <div class="actions"><button type="submit" class="quiet danger" disabled=${form.busy}>${t('review.refuse')}</button></div>`}
  <//>`;
}

/** Warns a reviewer of a customer who claims an address or name of theirs. */
export const PossibleSelf = ({ kyc }) => kyc.possible_self_review && html`<${Notice} tone="warn" title=${t('review.possible_self')}>
  ${t('review.possible_self_hint')}
<//>`;

const OUTCOME_TONES = { confirmed: 'good', rejected: 'bad', withdrawn: 'none', void: 'warn' };

/** The tone of the badge of a closed decision. */
export const decisionTone = (state) => OUTCOME_TONES[state] ?? 'none';
