import { html, useEffect, useId, useLayoutEffect, useRef, useState } from '../lib.js';
import { api, ApiError } from '../api.js';
import { date } from '../format.js';
import { LANGUAGES, language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf } from '../people.js';
import { Notice } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import {
  choicesOf, decisionBody, dueAtDecision, givesLevel, isAgainstSuggestion, isSameEvidence, missingMembers, needsReason, needsSecondPerson,
  suggestedLevel,
} from './decision_rules.js';
import { documentName, requirementText } from './kyc_steps.js';

const LEVELS = ['basic', 'standard', 'enhanced'];
const BLANK = { choice: '', level: '', reason: '', customer_reason: '' };

let reasons; // the load of the templates, shared by all forms of the page

/** The templates for reasons, read once. */
function reasonTemplates() {
  reasons ??= api.get('/v1/kyc/reasons').then((answer) => answer.reasons, (error) => {
    reasons = undefined;
    throw error;
  });
  return reasons;
}

const wrongField = (name, text) => new ApiError({ status: 400, message: text, details: { [name]: text } });
const conflict = (text) => new ApiError({ status: 409, message: text });

/** Takes a pending case into review, and returns the ETag for the decision. It fails when the case is another one by now. */
async function takeIntoReview(kyc) {
  const { cases: [taken] } = await api.post('/v1/kyc/cases/take', { customer_ids: [kyc.customer_id] });
  if (taken.outcome === 'assigned') throw conflict(t('review.assigned_to', { name: nameOf(taken.assignee) }));
  if (taken.outcome !== 'taken') throw conflict(t('review.closed'));
  const { record, etag } = await api.withETag(`/v1/customers/${kyc.customer_id}/kyc`);
  if (!isSameEvidence(kyc, record)) throw conflict(t('review.changed'));
  return etag;
}

/**
 * The state of a decision. Nothing is chosen at first; the level follows from the documents once the reviewer verifies.
 * @param {{kyc: any, etag: string, customer: any, done: (answer: any) => void, reload: () => any,
 *   take?: (request: (options?: object) => Promise<any>, decision: object) => void, obstacle?: (decision: object) => string}} about
 *   take: takes over the request that stores the decision, instead of sending it at once; obstacle: why it cannot be sent yet
 */
export function useDecision({ kyc, etag, customer, done, reload, take, obstacle }) {
  const [tag, setTag] = useState(LANGUAGES[customer?.metadata?.language] ? customer.metadata.language : language.get()); // of the templates
  const templates = useLoad(reasonTemplates, []);
  const form = useForm(BLANK, async (decision) => {
    if (!decision.choice) throw wrongField('choice', t('review.choose'));
    if (givesLevel(decision.choice) && !decision.level) throw wrongField('level', t('review.choose_level'));
    if (needsReason(kyc, decision) && !decision.reason.trim()) throw wrongField('reason', t('review.reason_missing'));
    const missing = missingMembers(kyc, decision).map(requirementText).join(', ');
    const why = missing ? t('review.members_missing', { what: missing }) : obstacle?.(decision);
    if (why) throw conflict(why);
    const ifMatch = kyc.kyc_status === 'pending' ? await takeIntoReview(kyc) : etag;
    const body = decisionBody(kyc, decision);
    const request = (options) => api.patch(`/v1/customers/${kyc.customer_id}/kyc/status`, body, { ifMatch, ...options });
    if (take) take(request, decision);
    else done(await request());
  }, async () => {
    await reload();
    return BLANK;
  }, ['choice', 'level']);
  const choices = choicesOf(kyc);
  useEffect(() => {
    if (form.values.choice && !choices.includes(form.values.choice)) form.set('choice', '');
  }, [kyc]);
  const forget = () => ['reason', 'customer_reason'].forEach((name) => form.set(name, ''));
  const two = needsSecondPerson(kyc, form.values);
  const wasTwo = useRef(two);
  useLayoutEffect(() => { // before the next key: it must not clear that
    if (wasTwo.current !== two) forget(); // They have other readers: what was written for reviewers must not reach the customer.
    wasTwo.current = two;
  }, [two]);
  /** Chooses an outcome, with the level that the documents support. */
  function choose(choice) {
    if (!choices.includes(choice)) return;
    if (choice !== form.values.choice) forget(); // They were written for another decision.
    form.set('choice', choice);
    form.set('level', givesLevel(choice) ? (choice === 'verified' ? suggestedLevel(kyc) : '') : '');
  }
  const fitting = (all) => (all ?? []).filter((one) => one.kyc_status === form.values.choice);
  /** Takes a template as the text for the customer, by its number from 1. */
  async function pick(n) {
    const template = fitting(await reasonTemplates().catch(() => []))[n - 1];
    if (template) form.set(two ? 'customer_reason' : 'reason', template.texts[tag]);
  }
  return { form, choices, choose, kyc, tag, setTag, templates: fitting(templates.data), pick };
}

function Choices({ decision, keys }) {
  const { form, choices, choose } = decision;
  const error = form.errors.choice;
  const id = useId();
  return html`<fieldset class="choices" aria-describedby=${error ? id : undefined}>
    <legend class="sr">${t('review.decision')}</legend>
    ${choices.map((choice) => html`<label key=${choice} class=${`choice ${choice}`}>
      <input type="radio" name="choice" value=${choice} checked=${form.values.choice === choice} aria-invalid=${error ? 'true' : undefined}
        onChange=${() => choose(choice)} />
      <span class="grow">${t(`review.do.${choice}`)}</span>${keys?.[choice] && html`<kbd aria-hidden="true">${keys[choice]}</kbd>`}
    </label>`)}
    ${error && html`<small class="field-error" id=${id}>${error}</small>`}
  </fieldset>`;
}

/** How the level follows from the documents: each condition with the documents that meet it. */
export function Derivation({ kyc }) {
  const { grounds, level } = kyc.suggestion;
  const shown = (id) => {
    const document = kyc.documents.find((one) => one.id === id);
    return document && [documentName(document.type), document.expiry_date && t('kyc.valid_until', { date: date(document.expiry_date) })]
      .filter(Boolean).join(', ');
  };
  return html`<div class="derivation">
    <p class="fine">${t('review.suggested')} <strong>${term('verification_level', level)}</strong></p>
    <ul>${grounds.map((ground) => html`<li key=${ground.requirement} class=${ground.met ? 'met' : 'unmet'}>
      <${Icon} name=${ground.met ? 'check' : 'close'} size=${14} />
      <span>
        ${requirementText(ground.requirement)}: ${ground.met
          ? ground.documents.map(shown).filter(Boolean).join('; ') || t('review.known') : t('review.missing')}
        <span class="fine"> → ${term('verification_level', ground.for)}</span>
      </span>
    </li>`)}</ul>
  </div>`;
}

/** The reasons that a reviewer can start from, in the language of the customer; the text stays editable. */
function Templates({ decision }) {
  const { tag, setTag, templates: fitting, pick } = decision;
  const id = useId();
  if (!fitting.length) return null;
  return html`<div class="templates">
    <div class="row">
      <span class="grow fine">${t('review.templates')}</span>
      <label class="sr" for=${id}>${t('review.template_language')}</label>
      <select id=${id} value=${tag} onChange=${(event) => setTag(event.target.value)}>
        ${Object.entries(LANGUAGES).map(([key, name]) => html`<option key=${key} value=${key} selected=${key === tag}>${name}</option>`)}
      </select>
    </div>
    <ol>${fitting.map((one, i) => html`<li key=${one.id}>
      <button type="button" class="quiet small template" lang=${tag} onClick=${() => pick(i + 1)}>
        <kbd aria-hidden="true">${i + 1}</kbd><span>${one.texts[tag]}</span>
      </button>
    </li>`)}</ol>
  </div>`;
}

/** Warnings before the decision is sent. */
function Warnings({ kyc, values }) {
  const due = dueAtDecision(kyc, values);
  return html`
    ${due.length > 0 && html`<${Notice} tone="warn" title=${t('review.still_due')}>${due.map(requirementText).join(', ')}<//>`}
    ${isAgainstSuggestion(kyc, values) && html`<${Notice} tone="warn">${t('review.against')}<//>`}
    ${needsSecondPerson(kyc, values) && html`<${Notice}>${t('review.second_person')}<//>`}`;
}

/**
 * The form for a decision.
 * @param {{decision: ReturnType<typeof useDecision>, cancel?: () => void, keys?: object}} props
 *   keys: the key of each choice, to be shown
 */
export function DecisionForm({ decision, cancel, keys }) {
  const { form, kyc } = decision;
  const { values } = form;
  const required = values.choice && needsReason(kyc, values);
  return html`<${Form} form=${form} class="decision">
    <${Choices} decision=${decision} keys=${keys} />
    ${givesLevel(values.choice) && html`
      <${Derivation} kyc=${kyc} />
      <${Field} form=${form} name="level" label=${t('customers.level')}
        options=${[['', t('review.choose_level')], ...LEVELS.map((level) => [level, term('verification_level', level)])]} />`}
    <${Warnings} kyc=${kyc} values=${values} />
    ${values.choice && (needsSecondPerson(kyc, values) ? html`
      <${Field} form=${form} name="reason" label=${t('kyc.reason')} rows=${3} maxlength="1000" required hint=${t('review.internal_hint')} />
      <${Templates} decision=${decision} />
      <${Field} form=${form} name="customer_reason" label=${t('review.told')} rows=${3} optional maxlength="1000"
        hint=${t('review.told_hint')} />` : html`
      <${Templates} decision=${decision} />
      <${Field} form=${form} name="reason" label=${t('kyc.reason')} rows=${3} optional=${!required} maxlength="1000"
        required=${required ? true : undefined} hint=${t('review.reason_hint')} />`)}
    <${Actions} form=${form} cancel=${cancel}
      label=${values.choice && needsSecondPerson(kyc, values) ? t('review.propose') : t('review.send')} />
  <//>`;
}
