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
import { DocumentDialog, nextStates, StatusDialog, TYPES } from './kyc_forms.js';

const WHEN = [['past_due', 'bad'], ['currently_due', 'warn'], ['expiring_soon', 'info']];
const ORDER = ['not_started', 'pending', 'in_review', 'verified'];

/** The way to verification as steps, with the present one marked. */
function Steps({ status }) {
  const at = ORDER.indexOf(status);
  return html`<ol class="steps" aria-label=${t('kyc.way')}>${ORDER.map((step, i) => html`<li key=${step} class=${at >= 0 && i < at ? 'past' : step === status ? 'now' : ''} aria-current=${step === status ? 'step' : undefined}>
    <span class="step-dot">${at >= 0 && (i < at || status === 'verified') ? html`<${Icon} name="check" size=${12} />` : i + 1}</span>${term('kyc_status', step)}</li>`)}</ol>`;
}

/** What is needed is named by a code of its own, or by the document that must be replaced. */
const needed = (code) => (TYPES.includes(code) ? term('document', code) : term('requirement', code));

function Requirements({ requirements }) {
  const rows = WHEN.flatMap(([when, tone]) => requirements[when].map((item) => ({ when, tone, item })));
  return html`<${Card} title=${t('kyc.requirements')}>
    ${rows.length
      ? html`<ul class="items">${rows.map(({ when, tone, item }, i) => html`<li key=${i}><span class="grow">${needed(item)}</span><${Badge} value=${t(`kyc.${when}`)} tone=${tone} /></li>`)}</ul>`
      : html`<${Empty} icon="check" title=${t('kyc.nothing_due')} />`}
  <//>`;
}

function Documents({ documents, add }) {
  return html`<${Card} title=${t('kyc.documents')} aside=${add && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${t('kyc.add')}</button>`}>
    ${documents.length
      ? html`<ul class="items">${documents.map((doc) => html`<li key=${doc.id}>
          <div class="grow two-lines"><span><strong>${term('document', doc.type)}</strong> <span class="code">${doc.number}</span></span>
            <span>${[country(doc.country), doc.expiry_date && t('kyc.valid_until', { date: date(doc.expiry_date) })].filter(Boolean).join(' · ')}</span></div>
          ${doc.expired ? html`<${Badge} group="kyc_status" value="expired" />` : html`<${Badge} value=${t('kyc.valid')} tone="good" />`}
        </li>`)}</ul>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_documents')}>${t('kyc.no_documents_text')}<//>`}
  <//>`;
}

function History({ entries }) {
  usePeople();
  return html`<${Card} title=${t('kyc.history')}>
    ${entries.length
      ? html`<ol class="timeline">${entries.map((entry) => html`<li key=${entry.changed_at + entry.to}>
          <p><${Badge} group="kyc_status" value=${entry.to} />${entry.verification_level && html` <span class="fine">${term('verification_level', entry.verification_level)}</span>`}</p>
          ${entry.reason && html`<p>${entry.reason}</p>`}
          <p class="fine">${dateTime(entry.changed_at)}${entry.changed_by && ` · ${nameOf(entry.changed_by)}`}</p>
        </li>`)}</ol>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_history')} />`}
  <//>`;
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
      <${Steps} status=${kyc.kyc_status} />
      <div class="row">
        ${!ORDER.includes(kyc.kyc_status) && html`<${Badge} group="kyc_status" value=${kyc.kyc_status} />`}
        <span class="grow fine">${kyc.verified_at ? t('kyc.verified_at', { date: dateTime(kyc.verified_at) }) : t('kyc.not_verified')}</span>
        ${reviews && nextStates(kyc).length > 0 && html`<button onClick=${() => setDialog('status')}>${t('kyc.decide')}</button>`}
      </div>
    </section>
    <div class="grid-2">
      <${Documents} documents=${kyc.documents} add=${rights.update && (() => setDialog('document'))} />
      <${Requirements} requirements=${kyc.requirements} />
      <${History} entries=${kyc.history} />
    </div>
    ${dialog === 'document' && html`<${DocumentDialog} customer=${customer} close=${() => setDialog(null)} done=${done} />`}
    ${dialog === 'status' && html`<${StatusDialog} customer=${customer} kyc=${kyc} close=${() => setDialog(null)} done=${done} />`}
  `}<//>`;
}
