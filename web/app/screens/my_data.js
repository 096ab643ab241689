import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { fullName } from '../customers.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePreferences } from '../preferences.js';
import { route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Empty, Loaded, toast } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { ContactFacts, PersonFacts } from './customer_facts.js';
import { MyDataDialog } from './my_data_form.js';
import { useOwnRecords } from './own_records.js';

const MOST_PAYERS = 50;

/** The people and companies that pay for the user. Nothing is shown without any. */
function Payers() {
  const load = useLoad(() => (may('payers', 'create') ? api.get('/v1/payers', { limit: MOST_PAYERS, active: true }) : { payers: [] }));
  if (!load.data?.payers.length) return null;
  return html`<${Card} title=${t('home.payers')}><ul class="items">${load.data.payers.map((payer) => html`<li key=${payer.id}>
    <a class="plain grow" href=${`/payers/${payer.id}`}>${payer.name || payer.company}</a>
    ${payer.name && html`<span class="fine">${payer.company}</span>`}
  </li>`)}</ul><//>`;
}

function Record({ record, several, edit }) {
  const { customer } = record;
  return html`<section class="stack" aria-label=${fullName(customer)}>
    ${several && html`<h2>${fullName(customer)}</h2>`}
    <div class="grid-2"><${PersonFacts} customer=${customer} plain /><${ContactFacts} customer=${customer} /></div>
    <p><button class="quiet" onClick=${() => edit(record)}><${Icon} name="edit" size=${16} />${t('home.edit')}</button></p>
  </section>`;
}

/** The data that the bank has about the user, in plain words, and the forms that change it. */
export default function MyData() {
  usePreferences();
  const { query } = useStore(route);
  const [editing, setEditing] = useState(null);
  const load = useOwnRecords();
  const close = () => {
    setEditing(null);
    setQuery({ new: '' });
  };
  const saved = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  const mayCreate = may('customers', 'create');
  const begin = mayCreate && html`<button onClick=${() => setQuery({ new: 1 })}>${t('home.begin')}</button>`;
  const current = editing && load.data?.find(({ customer }) => customer.id === editing.customer.id);
  return html`
    <${PageHead} title=${t('nav.my_data')} note=${t('home.data_note')} />
    <${Loaded} load=${load} lines=${8}>${(records) => (records.length
      ? html`<div class="stack">${records.map((record) => html`
          <${Record} key=${record.customer.id} record=${record} several=${records.length > 1} edit=${setEditing} />`)}<${Payers} /></div>`
      : html`<${Card}><${Empty} icon="card" title=${t('home.no_record')} action=${begin}>${t('home.no_record_text')}<//><//>`)}<//>
    ${editing && html`<${MyDataDialog} customer=${editing.customer} etag=${current?.etag ?? editing.etag} close=${close}
      done=${saved} />`}
    ${query.get('new') && mayCreate && html`<${MyDataDialog} close=${close} done=${saved} />`}`;
}
