import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may } from '../../access.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Copy, Table, When } from '../../ui/data.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, Notice, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';

/** What a key is usually made for; the command line and the API take any choice. */
const SCOPES = ['users.register', 'users.recover,users.complete_recovery', 'users.register,users.recover,users.complete_recovery', 'auth.public'];
const scopesInWords = (scopes) => (scopes.includes('*') ? t('keys.all') : scopes.map((one) => term('scope', one)).join(', '));
const hasEnded = (row) => row.expires_at && new Date(row.expires_at) <= new Date();

function NewKey({ close, done }) {
  const [made, setMade] = useState(null);
  const form = useForm({ name: '', scopes: '', expires_at: '' }, async ({ name, scopes, expires_at: end }) => {
    setMade(await api.post('/v1/api-keys', { name, ...(scopes && { scopes: scopes.split(',') }), ...(end && { expires_at: `${end}T00:00:00Z` }) }));
    done();
  });
  if (made) {
    const link = `${location.origin}/register#key=${encodeURIComponent(made.key)}`;
    return html`<${Dialog} key="made" title=${t('keys.made')} close=${close}>
      <${Notice} tone="warn">${t('keys.once')}<//>
      <p class="secret"><span class="code">${made.key}</span><${Copy} text=${made.key} label=${t('copy.key')} /></p>
      <p class="fine">${t('keys.link')}</p><p class="secret"><span class="code">${link}</span><${Copy} text=${link} label=${t('copy.link')} /></p>
      <div class="actions"><button onClick=${close}>${t('keys.kept')}</button></div>
    <//>`;
  }
  return html`<${Dialog} key="new" title=${t('keys.new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} hint=${t('keys.name_hint')} autocomplete="off" />
    <${Field} form=${form} name="scopes" label=${t('keys.scope')} options=${[['', t('keys.all')], ...SCOPES.map((one) => [one, scopesInWords(one.split(','))])]} />
    <${Field} form=${form} name="expires_at" type="date" optional label=${t('keys.expires')} hint=${t('keys.expires_hint')} />
    <${Actions} form=${form} label=${t('keys.create')} cancel=${close} />
  <//><//>`;
}

/** The API keys, with their last use. */
export default function Keys() {
  const [adding, setAdding] = useState(false);
  const load = useLoad(async () => (await api.get('/v1/api-keys', { limit: 100 })).data);
  async function revoke(row) {
    if (await confirm({ title: t('keys.revoke'), text: t('keys.revoke_text', { name: row.name }), action: t('keys.revoke') })) api.delete(`/v1/api-keys/${row.id}`).then(() => { load.reload(); toast(t('saved')); }, toastError);
  }
  const columns = [
    { key: 'name', label: t('field.name'), cell: (row) => row.name || html`<span class="code">${row.id}</span>` },
    { key: 'state', label: t('field.state'), cell: (row) => (row.revoked_at ? html`<${Badge} value=${t('keys.revoked')} tone="bad" />` : hasEnded(row) ? html`<${Badge} value=${t('keys.expired')} tone="bad" />` : html`<${Badge} group="active" value="active" />`) },
    { key: 'scopes', minor: true, label: t('keys.scope'), cell: (row) => scopesInWords(row.scopes) },
    { key: 'expires', minor: true, label: t('keys.expires'), cell: (row) => html`<${When} at=${row.expires_at} exact />` },
    { key: 'created', label: t('field.created_at'), cell: (row) => html`<${When} at=${row.created_at} exact />` },
    { key: 'used', label: t('keys.last_used'), cell: (row) => html`<${When} at=${row.last_used_at} />` },
    { key: 'do', label: '', num: true, cell: (row) => !row.revoked_at && may('api_keys', 'delete') && html`<button class="quiet small danger" onClick=${() => revoke(row)}>${t('keys.revoke')}</button>` },
  ];
  return html`
    <${PageHead} title=${t('nav.keys')} note=${t('keys.note')}>${may('api_keys', 'create') && html`<button onClick=${() => setAdding(true)}><${Icon} name="plus" size=${16} />${t('keys.new')}</button>`}<//>
    <section class="card flush" aria-label=${t('nav.keys')}><${Loaded} load=${load}>${(rows) => (rows.length ? html`<${Table} caption=${t('nav.keys')} columns=${columns} rows=${rows} />` : html`<${Empty} icon="key" title=${t('keys.none')} />`)}<//></section>
    ${adding && html`<${NewKey} close=${() => setAdding(false)} done=${load.reload} />`}`;
}
