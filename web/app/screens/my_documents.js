import { html, useState } from '../lib.js';
import { country } from '../countries.js';
import { fullName } from '../customers.js';
import { date } from '../format.js';
import { t } from '../i18n.js';
import { usePreferences } from '../preferences.js';
import { Badge } from '../ui/display.js';
import { Empty, Loaded, toast } from '../ui/feedback.js';
import { FileList } from '../ui/files.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { hasNoScan } from './kyc.js';
import { DocumentDialog } from './kyc_forms.js';
import { documentName } from './kyc_steps.js';
import { missingPhotos, Needs, needsOf, Standing, useOwnRecords } from './own_records.js';

/** A document with its files: the user adds scans or photos of it here. */
function Document({ document, customer, noPhoto, changed }) {
  const until = document.expiry_date && t('kyc.valid_until', { date: date(document.expiry_date) });
  return html`<li class="own-document">
    <div class="grow two-lines">
      <span><strong>${documentName(document.type)}</strong> <span class="num">${document.number}</span></span>
      <span>${[country(document.country), until].filter(Boolean).join(' · ')}</span>
    </div>
    ${document.expired && html`<${Badge} value=${t('home.expired')} tone="warn" />`}
    ${noPhoto && html`<${Badge} value=${t('home.no_photo')} tone="warn" />`}
    <${FileList} of=${{ type: 'kyc_documents', parent: customer.id, record: document.id }} changed=${changed} />
  </li>`;
}

function Record({ record, several, add, changed }) {
  const { customer, kyc } = record;
  const needs = needsOf(record);
  const button = html`<button class=${needs.length ? '' : 'quiet'} onClick=${() => add(customer)}>
    <${Icon} name="plus" size=${16} />${t('home.add_document')}
  </button>`;
  return html`<section class="stack" aria-label=${fullName(customer)}>
    ${several && html`<h2>${fullName(customer)}</h2>`}
    <div class="grid-main">
      <div class="stack">
        <${Card} title=${t('home.needs')}>
          <${Standing} kyc=${kyc} />
          ${needs.length > 0 && html`<${Needs} rows=${needs} />`}
          ${!needs.length && !missingPhotos(record).length
            && html`<p class="row none"><${Icon} name="check" size=${16} />${t('home.nothing')}</p>`}
          <p>${button}</p>
        <//>
      </div>
      <${Card} title=${t('home.given')}>
        ${kyc.documents.length
          ? html`<ul class="items">${kyc.documents.map((one) => html`
              <${Document} key=${one.id} document=${one} customer=${customer} changed=${changed}
                noPhoto=${hasNoScan(kyc, one)} />`)}</ul>`
          : html`<p class="fine">${t('home.none_given')}</p>`}
      <//>
    </div>
  </section>`;
}

/** The requirements of the bank, and the documents that the user has sent. */
export default function MyDocuments() {
  usePreferences();
  const [adding, setAdding] = useState(null);
  const load = useOwnRecords();
  const close = () => setAdding(null);
  const done = ({ missing }) => {
    close();
    load.reload();
    if (missing) toast(t('home.photo_later'), 'info');
    else toast(t('home.thanks'));
  };
  const begin = html`<a class="button" href="/me/data?new=1">${t('home.begin')}</a>`;
  return html`
    <${PageHead} title=${t('nav.needs')} note=${t('home.documents_note')} />
    <${Loaded} load=${load} lines=${8}>${(records) => (records.length
      ? html`<div class="stack">${records.map((record) => html`
          <${Record} key=${record.customer.id} record=${record} several=${records.length > 1}
            add=${setAdding} changed=${load.reload} />`)}</div>`
      : html`<${Card}><${Empty} icon="card" title=${t('home.no_record')} action=${begin}>${t('home.no_record_text')}<//><//>`)}<//>
    ${adding && html`<${DocumentDialog} customer=${adding} photo close=${close} done=${done} />`}`;
}
