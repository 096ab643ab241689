import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { country } from '../countries.js';
import { date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { Badge } from '../ui/data.js';
import { Empty, Loaded, toast } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { DocumentDialog, nextStates, StatusDialog } from './kyc_forms.js';
import { needed, Steps, WHEN } from './kyc_parts.js';

function Requirements({ requirements }) {
  const rows = WHEN.flatMap(([when, tone]) => requirements[when].map((item) => ({ when, tone, item })));
  return html`<${Card} title=${t('kyc.requirements')}>
    ${rows.length
      ? html`<ul class="items">${rows.map(({ when, tone, item }, i) => html`<li key=${i}><span class="grow">${needed(item)}</span><${Badge} value=${t(`kyc.${when}`)} tone=${tone} /></li>`)}</ul>`
      : html`<p class="row none"><${Icon} name="check" size=${16} />${t('kyc.nothing_due')}</p>`}
  <//>`;
}

function Documents({ documents, add }) {
  return html`<${Card} title=${t('kyc.documents')} aside=${add && html`<button class="quiet small" onClick=${add}><${Icon} name="plus" size=${14} />${t('kyc.add')}</button>`}>
    ${documents.length
      ? html`<ul class="items">${documents.map((doc) => html`<li key=${doc.id}>
          <span class="event" aria-hidden="true"><${Icon} name=${doc.type === 'proof_of_address' ? 'home' : 'card'} size=${16} /></span>
          <div class="grow two-lines"><span><strong>${term('document', doc.type)}</strong> <span class="num">${doc.number}</span></span>
            <span>${[country(doc.country), doc.expiry_date && t('kyc.valid_until', { date: date(doc.expiry_date) })].filter(Boolean).join(' · ')}</span></div>
          ${doc.expired ? html`<${Badge} group="kyc_status" value="expired" />` : html`<${Badge} value=${t('kyc.valid')} tone="good" />`}
        </li>`)}</ul>`
      : html`<${Empty} icon="audit" title=${t('kyc.no_documents')}>${t('kyc.no_documents_text')}<//>`}
  <//>`;
}

/** What changed of an identity, as one sentence. */
function changed({ field, from, to }) {
  const shown = (value) => (field === 'type' ? term('customer_type', value) : field === 'date_of_birth' ? date(value) : field === 'nationality' ? country(value) : value) || '–';
  return t('kyc.changed', { field: t(`field.${field}`), from: shown(from), to: shown(to) });
}

function History({ entries }) {
  usePeople();
  return html`<${Card} title=${t('kyc.history')}>
    ${entries.length
      ? html`<ol class="timeline">${entries.map((entry) => html`<li key=${entry.changed_at + entry.to + (entry.changes?.[0]?.to ?? '')}>
          <p class="row"><${Badge} group="kyc_status" value=${entry.to} />${entry.verification_level && entry.verification_level !== 'none' && html`<span class="fine">${t('customers.level_is', { level: term('verification_level', entry.verification_level) })}</span>`}</p>
          ${entry.reason && html`<p>${entry.reason}</p>`}
          ${entry.changes?.map((one) => html`<p key=${one.field} class="fine">${changed(one)}</p>`)}
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
        <span class="grow fine">${kyc.verified_at ? t('kyc.verified_at', { date: dateTime(kyc.verified_at) }) : t('kyc.not_verified')}</span>
        ${reviews && nextStates(kyc).length > 0 && html`<button class=${kyc.kyc_status === 'verified' ? 'quiet' : ''} onClick=${() => setDialog('status')}>${t('kyc.decide')}</button>`}
      </div>
    </section>
    <div class="grid-main">
      <div class="stack">
        <${Documents} documents=${kyc.documents} add=${rights.update && (() => setDialog('document'))} />
        <${Requirements} requirements=${kyc.requirements} />
      </div>
      <${History} entries=${kyc.history} />
    </div>
    ${dialog === 'document' && html`<${DocumentDialog} customer=${customer} close=${() => setDialog(null)} done=${done} />`}
    ${dialog === 'status' && html`<${StatusDialog} customer=${customer} kyc=${kyc} close=${() => setDialog(null)} done=${done} />`}
  `}<//>`;
}
