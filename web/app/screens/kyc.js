import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { country, date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { Badge } from '../ui/data.js';
import { Empty, Loaded, toast } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { DocumentDialog, StatusDialog } from './kyc_forms.js';

const WHEN = [['past_due', 'bad'], ['currently_due', 'warn'], ['expiring_soon', 'info']];
const ORDER = ['not_started', 'pending', 'in_review', 'verified'];

/** The way to verification as steps, with the present one marked. */
function Steps({ status }) {
  const at = ORDER.indexOf(status);
  return html`<ol class="steps" aria-label=${t('kyc.way')}>${ORDER.map((step, i) => html`<li key=${step} class=${at >= 0 && i < at ? 'past' : step === status ? 'now' : ''} aria-current=${step === status ? 'step' : undefined}>
    <span class="step-dot">${at >= 0 && (i < at || status === 'verified') ? html`<${Icon} name="check" size=${12} />` : i + 1}</span>${term('kyc_status', step)}</li>`)}</ol>`;
}

/** A requirement may be a bare code or an object with more about it. */
function Requirement({ item }) {
  const code = typeof item === 'string' ? item : item.requirement ?? item.code ?? item.type ?? item.name;
  const until = item.expiry_date ?? item.due_date;
  return html`<span>${item.message ?? term('requirement', code)}${item.document_type && item.document_type !== code ? ` – ${term('document', item.document_type)}` : ''}${until ? html` <span class="fine">${t('kyc.until', { date: date(until) })}</span>` : ''}</span>`;
}

function Requirements({ requirements = {} }) {
  const rows = WHEN.flatMap(([when, tone]) => (requirements[when] ?? []).map((item) => ({ when, tone, item })));
  return html`<${Card} title=${t('kyc.requirements')}>
    ${rows.length
      ? html`<ul class="items">${rows.map(({ when, tone, item }, i) => html`<li key=${i}><span class="grow"><${Requirement} item=${item} /></span><${Badge} value=${t(`kyc.${when}`)} tone=${tone} /></li>`)}</ul>`
      : html`<${Empty} icon="check" title=${t('kyc.nothing_due')} />`}
  <//>`;
}

function Documents({ documents, add }) {
  const today = new Date().toISOString().slice(0, 10);
  return html`<${Card} title=${t('kyc.documents')} aside=${add && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${t('kyc.add')}</button>`}>
    ${documents.length
      ? html`<ul class="items">${documents.map((doc, i) => html`<li key=${doc.id ?? i}>
          <div class="grow two-lines"><span><strong>${term('document', doc.type)}</strong> <span class="code">${doc.number}</span></span>
            <span>${[country(doc.country), doc.expiry_date && t('kyc.valid_until', { date: date(doc.expiry_date) })].filter(Boolean).join(' · ')}</span></div>
          ${doc.expiry_date && doc.expiry_date < today ? html`<${Badge} group="kyc_status" value="expired" />` : html`<${Badge} value=${t('kyc.valid')} tone="good" />`}
        </li>`)}</ul>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_documents')}>${t('kyc.no_documents_text')}<//>`}
  <//>`;
}

function History({ entries }) {
  usePeople();
  return html`<${Card} title=${t('kyc.history')}>
    ${entries.length
      ? html`<ol class="timeline">${entries.map((entry, i) => html`<li key=${entry.id ?? i}>
          <p><${Badge} group="kyc_status" value=${entry.to ?? entry.to_status ?? entry.kyc_status} />${entry.verification_level && html` <span class="fine">${term('verification_level', entry.verification_level)}</span>`}</p>
          ${entry.reason && html`<p>${entry.reason}</p>`}
          <p class="fine">${dateTime(entry.created_at ?? entry.at ?? entry.changed_at)}${(entry.created_by ?? entry.actor ?? entry.changed_by) && ` · ${nameOf(entry.created_by ?? entry.actor ?? entry.changed_by)}`}</p>
        </li>`)}</ol>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_history')} />`}
  <//>`;
}

/** The states a customer may go to next: the server names them as a list or as an object from state to who may. */
export function nextStates(transitions) {
  if (!transitions) return [];
  if (Array.isArray(transitions)) return transitions.map((one) => (typeof one === 'string' ? { state: one } : { state: one.to ?? one.kyc_status ?? one.status ?? one.state, who: one.who ?? one.by ?? one.allowed_for }));
  return Object.entries(transitions).map(([state, who]) => ({ state, who }));
}

/** Identity verification of one customer: what is there, what is missing, where it may go. */
export function Kyc({ customer, rights, changed }) {
  usePrefs();
  const [dialog, setDialog] = useState(null);
  const load = useLoad(() => api.tagged(`/v1/customers/${customer.id}/kyc`), [customer.id, customer.kyc_status]);
  const done = () => {
    setDialog(null);
    load.reload();
    changed();
    toast(t('saved'));
  };
  const reviews = may('customers', 'update');
  return html`<${Loaded} load=${load} lines=${8}>${({ record: kyc }) => html`
    <section class="card kyc-head">
      <${Steps} status=${kyc.kyc_status ?? customer.kyc_status} />
      <div class="row">
        ${!ORDER.includes(kyc.kyc_status ?? customer.kyc_status) && html`<${Badge} group="kyc_status" value=${kyc.kyc_status ?? customer.kyc_status} />`}
        <span class="grow fine">${kyc.verified_at ? t('kyc.verified_at', { date: dateTime(kyc.verified_at) }) : t('kyc.not_verified')}</span>
        ${reviews && nextStates(kyc.transitions).length > 0 && html`<button onClick=${() => setDialog('status')}>${t('kyc.decide')}</button>`}
      </div>
    </section>
    <div class="grid-2">
      <${Documents} documents=${kyc.documents ?? []} add=${rights.update && (() => setDialog('document'))} />
      <${Requirements} requirements=${kyc.requirements} />
      <${History} entries=${kyc.history ?? []} />
    </div>
    ${dialog === 'document' && html`<${DocumentDialog} customer=${customer} close=${() => setDialog(null)} done=${done} />`}
    ${dialog === 'status' && html`<${StatusDialog} customer=${customer} kyc=${kyc} next=${nextStates(kyc.transitions)} close=${() => setDialog(null)} done=${done} />`}
  `}<//>`;
}
