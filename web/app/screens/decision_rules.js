// The rules of a decision about a verification, without the page. The server enforces those that must hold.

const OUTCOMES = ['verified', 'action_required', 'rejected'];

/** The states that a reviewer may choose now; the system sets the others. */
export const nextStates = ({ transitions }) => Object.keys(transitions).filter((state) => transitions[state].includes('reviewer'));

/**
 * Returns the choices of a reviewer: a next state, or 'level' for another level of a verified customer. A pending case is taken into
 * review first.
 */
export function choicesOf(kyc) {
  if (kyc.pending_decision) return [];
  if (kyc.kyc_status === 'pending' || kyc.kyc_status === 'in_review') return OUTCOMES;
  return kyc.kyc_status === 'verified' ? ['level', ...nextStates(kyc)] : nextStates(kyc);
}

/** Whether a choice gives the customer a level. */
export const givesLevel = (choice) => choice === 'verified' || choice === 'level';

/** The level that the documents support; empty when they support none. */
export const suggestedLevel = ({ suggestion }) => (suggestion.level === 'none' ? '' : suggestion.level);

/** Whether the server will ask for a second person. */
export function needsSecondPerson(kyc, { choice, level }) {
  const isSameLevel = choice === 'level' && level === kyc.verification_level;
  const decides = givesLevel(choice) && !isSameLevel;
  if (kyc.four_eyes === 'always') return choice === 'rejected' || decides;
  return kyc.four_eyes === 'enhanced' && decides && level === 'enhanced';
}

/** Whether the level differs from the one that the documents support. */
export const isAgainstSuggestion = (kyc, { choice, level }) => givesLevel(choice) && level !== '' && level !== suggestedLevel(kyc);

/** Whether a decision needs a reason: the customer or a second person must know why. */
export const needsReason = (kyc, decision) => decision.choice === 'rejected' || decision.choice === 'action_required'
  || needsSecondPerson(kyc, decision) || isAgainstSuggestion(kyc, decision);

const MEMBERS = ['date_of_birth', 'nationality', 'address']; // grounds that no document meets

/** The members of the customer that the chosen level needs and that are not known; the server refuses such a verification. */
export function missingMembers({ suggestion }, { choice, level }) {
  if (!givesLevel(choice)) return [];
  return suggestion.grounds.filter((ground) => !ground.met && MEMBERS.includes(ground.requirement)
    && (ground.for === 'basic' || level !== 'basic')).map((ground) => ground.requirement);
}

/** The requirements that are due although the customer would be verified. */
export function dueAtDecision(kyc, { choice }) {
  if (!givesLevel(choice)) return [];
  const { past_due: past, currently_due: current } = kyc.requirements;
  return [...new Set([...past, ...current])].filter((code) => code !== 'enhanced_review');
}

/**
 * The body of the request for a decision. The customer reads the reason of a decision of one person; that of two persons stays with
 * reviewers, beside a text for the customer.
 */
export function decisionBody(kyc, decision) {
  const { choice, level, reason, customer_reason: told } = decision;
  const body = { reason: reason.trim() };
  if (needsSecondPerson(kyc, decision) && told.trim()) body.customer_reason = told.trim();
  if (choice !== 'level') body.kyc_status = choice;
  if (givesLevel(choice)) body.verification_level = level;
  return body;
}

/** Whether a case that was read again is still the one that the reviewer looked at. */
export const isSameEvidence = (before, now) => JSON.stringify([before.documents, before.pending_decision])
  === JSON.stringify([now.documents, now.pending_decision]);

/** Returns the id beside the present one in a queue: after it, or before it with step -1; null at the end. */
export function neighbour(ids, id, step = 1) {
  const at = ids.indexOf(id);
  return ids[at < 0 ? 0 : at + step] ?? null;
}
