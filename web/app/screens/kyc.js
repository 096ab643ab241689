import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { CALL, may, mayCall } from '../access.js';
import { country } from '../countries.js';
import { date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePreferences } from '../preferences.js';
import { Badge } from '../ui/display.js';
import { Empty, Loaded, toast } from '../ui/feedback.js';
import { FileList } from '../ui/files.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { choicesOf } from './decision_rules.js';
import { DecisionDialog, DocumentDialog } from './kyc_forms.js';
import { documentName, RequirementList, requirementsOf, Steps } from './kyc_steps.js';
import { decisionTone, PendingDecision, PossibleSelf } from './pending_decision.js';

function Requirements({ requirements }) {
  const rows = requirementsOf(requirements);
  return html`<${Card} title=${t('kyc.requirements')}>
    ${rows.length
      ? html`<${RequirementList} rows=${rows} />`
      : html`<p class="row none"><${Icon} name="check" size=${16} />${t('kyc.nothing_due')}</p>`}
  <//>`;
}

/**
 * A document with its validity and its files. isNew: the customer has added it since a decision was proposed; noScan: it has no scan
 * or photo.
 */
export function DocumentLine({ document, customer, mayAdd, isNew, noScan }) {
  const icon = document.type === 'proof_of_address' ? 'home' : 'card';
  const until = document.expiry_date && t('kyc.valid_until', { date: date(document.expiry_date) });
  return html`<li>
    <span class="event" aria-hidden="true"><${Icon} name=${icon} size=${16} /></span>
    <div class="grow two-lines">
      <span><strong>${documentName(document.type)}</strong> <span class="num">${document.number}</span></span>
      <span>${[country(document.country), until].filter(Boolean).join(' · ')}</span>
    </div>
    ${isNew && html`<${Badge} value=${t('review.new_since')} tone="warn" />`}
    ${noScan && html`<${Badge} value=${t('review.no_scan')} tone="warn" />`}
    ${document.expired
      ? html`<${Badge} group="kyc_status" value="expired" />`
      : html`<${Badge} value=${t('kyc.valid')} tone="good" />`}
    ${mayCall(CALL.customerFiles) && html`
      <${FileList} of=${{ type: 'kyc_documents', parent: customer.id, record: document.id }} readOnly=${!mayAdd} />`}
  </li>`;
}

/** Whether a document is new since the decision that waits was proposed. */
export const isNewSince = (kyc, document) => Boolean(kyc.pending_decision?.documents_added?.includes(document.id));

/** Whether a valid document has no scan or photo. */
export const hasNoScan = (kyc, document) => kyc.requirements.missing_scans.includes(document.id);

function Documents({ kyc, customer, add }) {
  const { documents } = kyc;
  const button = add && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${t('kyc.add')}</button>`;
  return html`<${Card} title=${t('kyc.documents')} aside=${button}>
    ${documents.length
      ? html`<ul class="items">${documents.map((one) => html`
          <${DocumentLine} key=${one.id} document=${one} customer=${customer} mayAdd=${Boolean(add)}
            isNew=${isNewSince(kyc, one)} noScan=${hasNoScan(kyc, one)} />`)}</ul>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_documents')}>${t('kyc.no_documents_text')}<//>`}
  <//>`;
}

const FIELD_TEXT = { type: (value) => term('customer_type', value), date_of_birth: date, nationality: country };

/** A change of the customer's identity, as one sentence. */
function changeText({ field, from, to }) {
  const shown = (value) => (FIELD_TEXT[field] ?? String)(value ?? '') || '–';
  return t('kyc.changed', { field: t(`field.${field}`), from: shown(from), to: shown(to) });
}

function HistoryEntry({ entry }) {
  const level = entry.verification_level && entry.verification_level !== 'none'
    && html`<span class="fine">${t('customers.level_is', { level: term('verification_level', entry.verification_level) })}</span>`;
  return html`<li>
    <p class="row"><${Badge} group="kyc_status" value=${entry.to} />${level}</p>
    ${entry.reason && html`<p>${entry.reason}</p>`}
    ${entry.customer_reason && html`<p class="fine">${t('review.told')}: ${entry.customer_reason}</p>`}
    ${entry.changes?.map((one) => html`<p key=${one.field} class="fine">${changeText(one)}</p>`)}
    <p class="fine">${dateTime(entry.changed_at)}${entry.changed_by && html` · <${Person} id=${entry.changed_by} signIn />`}</p>
  </li>`;
}

/** The changes of the verification, newest first. */
export function History({ entries }) {
  const keyOf = (entry) => entry.changed_at + entry.to + (entry.changes?.[0]?.to ?? '');
  return html`<${Card} title=${t('kyc.history')}>
    ${entries.length
      ? html`<ol class="timeline">${entries.map((entry) => html`<${HistoryEntry} key=${keyOf(entry)} entry=${entry} />`)}</ol>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_history')}>${t('kyc.no_history_text')}<//>`}
  <//>`;
}

/** The decisions that needed a second person and are closed. */
const ClosedDecisions = ({ decisions }) => html`<${Card} title=${t('review.closed_decisions')}>
  <ul class="items">${decisions.map((one) => html`<li key=${one.id}>
    <div class="grow two-lines">
      <span>${[term('kyc_status', one.kyc_status), one.verification_level !== 'none' && term('verification_level', one.verification_level)]
        .filter(Boolean).join(' · ')} – ${one.reason}</span>
      <span class="fine">${t('review.proposed_by')} <${Person} id=${one.proposed_by} signIn /> · ${dateTime(one.proposed_at)}${
        one.closed_by && html` · ${t('review.closed_by')} <${Person} id=${one.closed_by} signIn />`}${
        one.closing_reason && ` · ${one.closing_reason}`}</span>
    </div>
    <${Badge} group="decision" value=${one.state} tone=${decisionTone(one.state)} />
  </li>`)}</ul>
<//>`;

function State({ kyc, decide }) {
  return html`<section class="card kyc-head">
    <${Steps} status=${kyc.kyc_status} />
    <div class="row">
      <span class="grow fine">
        ${kyc.verified_at ? t('kyc.verified_at', { date: dateTime(kyc.verified_at) }) : t('kyc.not_verified')}
      </span>
      ${decide && html`<button class=${kyc.kyc_status === 'verified' ? 'quiet' : ''} onClick=${decide}>${t('kyc.decide')}</button>`}
    </div>
  </section>`;
}

/** The verification of one customer: its state, documents, requirements and history. */
export function Kyc({ customer, rights, changed }) {
  usePreferences();
  const [dialog, setDialog] = useState('');
  const load = useLoad(() => api.withETag(`/v1/customers/${customer.id}/kyc`), [customer.id, customer.kyc_status]);
  const close = () => setDialog('');
  const done = () => {
    close();
    load.reload();
    changed();
    toast(t('saved'));
  };
  const isReviewer = may('customers', 'update');
  return html`<${Loaded} load=${load} lines=${8}>${({ record: kyc, etag }) => html`
    <${State} kyc=${kyc} decide=${isReviewer && rights.update && choicesOf(kyc).length > 0 && (() => setDialog('status'))} />
    <${PossibleSelf} kyc=${kyc} />
    ${kyc.pending_decision && html`<${Card} title=${t('review.second')}><${PendingDecision} kyc=${kyc} etag=${etag} done=${done} /><//>`}
    <div class="grid-main">
      <div class="stack">
        <${Documents} kyc=${kyc} customer=${customer} add=${rights.update && (() => setDialog('document'))} />
        <${Requirements} requirements=${kyc.requirements} />
        ${kyc.decisions.length > 0 && html`<${ClosedDecisions} decisions=${kyc.decisions} />`}
      </div>
      <${History} entries=${kyc.history} />
    </div>
    ${dialog === 'document' && html`<${DocumentDialog} customer=${customer} close=${close} done=${done} />`}
    ${dialog === 'status' && html`<${DecisionDialog} customer=${customer} kyc=${kyc} etag=${etag} close=${close} done=${done}
      reload=${load.reload} />`}
  `}<//>`;
}
