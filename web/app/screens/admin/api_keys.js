import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { DateField } from '../../ui/date_field.js';
import { Badge, Copy, When } from '../../ui/display.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Notice, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';

// The usual scopes of a key; the command line and the API accept any combination.
const SCOPES = ['users.register', 'auth.public'];
const scopeText = (scopes) => (scopes.includes('*') ? t('keys.all') : scopes.map((one) => term('scope', one)).join(', '));
const isExpired = (row) => row.expires_at && new Date(row.expires_at) <= new Date();

const Secret = ({ text, label }) => html`<p class="secret">
  <span class="code">${text}</span><${Copy} text=${text} label=${label} />
</p>`;

/** Shows a new key. The server returns it only once. */
function CreatedDialog({ secret, close }) {
  const link = `${location.origin}/register#key=${encodeURIComponent(secret)}`;
  return html`<${Dialog} title=${t('keys.created')} close=${close}>
    <${Notice} tone="warn">${t('keys.once')}<//>
    <${Secret} text=${secret} label=${t('copy.key')} />
    <p class="fine">${t('keys.link')}</p>
    <${Secret} text=${link} label=${t('copy.link')} />
    <div class="actions"><button onClick=${close}>${t('keys.saved')}</button></div>
  <//>`;
}

function KeyDialog({ close, done }) {
  const [secret, setSecret] = useState('');
  const form = useForm({ name: '', scopes: '', expires_at: '' }, async ({ name, scopes, expires_at: end }) => {
    const body = { name, ...(scopes && { scopes: [scopes] }), ...(end && { expires_at: `${end}T00:00:00Z` }) };
    setSecret((await api.post('/v1/api-keys', body)).key);
    done();
  });
  if (secret) return html`<${CreatedDialog} key="created" secret=${secret} close=${close} />`;
  const scopes = [['', t('keys.all')], ...SCOPES.map((one) => [one, scopeText([one])])];
  return html`<${Dialog} key="new" title=${t('keys.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} hint=${t('keys.name_hint')} autocomplete="off" />
    <${Field} form=${form} name="scopes" label=${t('keys.scope')} options=${scopes} />
    <${DateField} form=${form} name="expires_at" optional label=${t('keys.expires')} hint=${t('keys.expires_hint')} />
    <${Actions} form=${form} label=${t('keys.create')} cancel=${close} />
  <//><//>`;
}

function State({ row }) {
  if (row.revoked_at) return html`<${Badge} value=${t('keys.revoked')} tone="bad" />`;
  if (isExpired(row)) return html`<${Badge} value=${t('keys.expired')} tone="bad" />`;
  return html`<${Badge} group="active" value="active" />`;
}

function columnsOf(revoke) {
  const button = (row) => !row.revoked_at && may('api_keys', 'delete')
    && html`<button class="quiet small danger" onClick=${() => revoke(row)}>${t('keys.revoke')}</button>`;
  return [
    { key: 'name', label: t('field.name'), cell: (row) => row.name || html`<span class="code">${row.id}</span>` },
    { key: 'state', label: t('field.state'), cell: (row) => html`<${State} row=${row} />` },
    { key: 'scopes', minor: true, label: t('keys.scope'), cell: (row) => scopeText(row.scopes) },
    { key: 'expires', minor: true, label: t('keys.expires'), cell: (row) => html`<${When} at=${row.expires_at} exact />` },
    { key: 'created', label: t('field.created_at'), cell: (row) => html`<${When} at=${row.created_at} exact />` },
    { key: 'used', label: t('keys.last_used'), cell: (row) => html`<${When} at=${row.last_used_at} />` },
    { key: 'do', label: '', num: true, cell: button },
  ];
}

/** The API keys and when they were last used. */
export default function ApiKeys() {
  const [adding, setAdding] = useState(false);
  const list = useList('/v1/api-keys', { sort: '-created_at' });
  async function revoke(row) {
    const text = t('keys.revoke_text', { name: row.name });
    if (!(await confirm({ title: t('keys.revoke'), text, action: t('keys.revoke') }))) return;
    const done = () => {
      list.reload();
      toast(t('saved'));
    };
    api.delete(`/v1/api-keys/${row.id}`).then(done, toastError);
  }
  const create = may('api_keys', 'create') && html`<button onClick=${() => setAdding(true)}>
    <${Icon} name="plus" size=${16} />${t('keys.new')}
  </button>`;
  return html`
    <${PageHead} title=${t('nav.keys')} note=${t('keys.note')}>
      ${create}
    <//>
    <${RecordList} list=${list} title=${t('nav.keys')} columns=${columnsOf(revoke)}
      empty=${html`<${Empty} icon="key" title=${t('keys.none')} action=${create}>${t('keys.none_text')}<//>`} />
    ${adding && html`<${KeyDialog} close=${() => setAdding(false)} done=${list.reload} />`}`;
}
