import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, roleName } from '../../access.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { DateField } from '../../ui/date_field.js';
import { Badge, Copy, Facts, RecordId, When } from '../../ui/display.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, Notice, toast, useAction } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Card, PageHead } from '../../ui/page.js';
import { Table } from '../../ui/table.js';
import { WhoSees } from '../../ui/who_sees.js';

const isOver = (token) => token.revoked_at || new Date(token.expires_at) <= new Date();
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** Shows a new token. The server returns it only once. */
const TokenCreated = ({ text, close }) => html`<${Dialog} title=${t('services.token_created')} close=${close}>
  <${Notice} tone="warn">${t('services.token_once')}<//>
  <p class="secret"><span class="code">${text}</span><${Copy} text=${text} label=${t('services.copy')} /></p>
  <p class="fine">${t('services.token_use')}</p>
  <div class="actions"><button onClick=${close}>${t('services.saved')}</button></div>
<//>`;

function TokenDialog({ account, close, done }) {
  const [text, setText] = useState('');
  const blank = { name: '', expires_at: '', networks: '', scopes: '' };
  const form = useForm(blank, async ({ name, expires_at: end, networks, scopes }) => {
    const limits = {
      ...(end && { expires_at: `${end}T00:00:00Z` }),
      ...(words(networks).length && { networks: words(networks) }),
      ...(words(scopes).length && { scopes: words(scopes) }),
    };
    setText((await api.post(`/v1/service-accounts/${account.id}/tokens`, { name, ...limits })).token);
    done();
  });
  if (text) return html`<${TokenCreated} key="created" text=${text} close=${close} />`;
  return html`<${Dialog} key="new" title=${t('services.token_new')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} hint=${t('services.token_name_hint')} autocomplete="off" />
    <${DateField} form=${form} name="expires_at" optional label=${t('services.expires')} hint=${t('services.expires_hint')} />
    <${Field} form=${form} name="networks" rows=${2} optional label=${t('services.networks')} hint=${t('services.networks_hint')} />
    <${Field} form=${form} name="scopes" rows=${2} optional label=${t('services.scopes')} hint=${t('services.scopes_hint')} />
    <${Actions} form=${form} label=${t('services.token_create')} cancel=${close} />
  <//><//>`;
}

function EditDialog({ account, close, done }) {
  const form = useForm({ name: account.name, description: account.description }, async (values) => {
    await api.patch(`/v1/service-accounts/${account.id}`, values);
    close();
    done();
    toast(t('saved'));
  });
  return html`<${Dialog} title=${t('do.edit')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="name" label=${t('field.name')} autocomplete="off" />
    <${Field} form=${form} name="description" rows=${3} optional label=${t('services.description')} />
    <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
  <//><//>`;
}

function State({ token }) {
  if (token.revoked_at) return html`<${Badge} value=${t('services.revoked')} tone="bad" />`;
  if (isOver(token)) return html`<${Badge} value=${t('services.expired')} tone="bad" />`;
  return html`<${Badge} group="active" value="active" />`;
}

const columnsOf = (revoke) => [
  { key: 'name', label: t('field.name'), cell: (row) => row.name },
  { key: 'state', label: t('field.state'), cell: (row) => html`<${State} token=${row} />` },
  { key: 'expires', label: t('services.expires'), cell: (row) => html`<${When} at=${row.expires_at} exact />` },
  { key: 'used', label: t('services.last_used'), cell: (row) => html`<${When} at=${row.last_used_at} />` },
  { key: 'networks', minor: true, label: t('services.networks'), cell: (row) => row.networks.join(', ') || t('services.everywhere') },
  {
    key: 'scopes', minor: true, label: t('services.scopes'),
    cell: (row) => (row.scopes.includes('*') ? t('services.everything') : row.scopes.join(', ')),
  },
  {
    key: 'do', label: '', num: true, cell: (row) => revoke && !isOver(row)
      && html`<button class="quiet small danger" onClick=${() => revoke(row)}>${t('services.revoke')}</button>`,
  },
];

function Tokens({ account }) {
  const [adding, setAdding] = useState(false);
  const path = `/v1/service-accounts/${account.id}/tokens`;
  const load = useLoad(async () => (await api.get(path, { limit: 100, sort: '-created_at' })).data, [account.id, account.status]);
  const revoke = useAction(async (row) => {
    const question = { title: t('services.revoke'), text: t('services.revoke_text', { name: row.name }) };
    if (!(await confirm({ ...question, action: t('services.revoke') }))) return;
    await api.delete(`${path}/${row.id}`);
    load.reload();
    toast(t('saved'));
  });
  const mayChange = may('service_accounts', 'update');
  const add = mayChange && account.status === 'active'
    && html`<button class="quiet small" onClick=${() => setAdding(true)}>${t('services.token_new')}</button>`;
  return html`<${Card} title=${t('services.tokens')} aside=${add}>
    <${Loaded} load=${load}>${(rows) => (rows.length
      ? html`<${Table} caption=${t('services.tokens')} columns=${columnsOf(mayChange && revoke.run)} rows=${rows} />`
      : html`<${Empty} icon="key" title=${t('services.no_tokens')}>${t('services.no_tokens_text')}<//>`)}<//>
    ${adding && html`<${TokenDialog} account=${account} close=${() => setAdding(false)} done=${load.reload} />`}
  <//>`;
}

function Head({ account, reload }) {
  const [editing, setEditing] = useState(false);
  const disable = useAction(async () => {
    const question = { title: t('services.disable'), text: t('services.disable_text', { name: account.name }) };
    if (!(await confirm({ ...question, action: t('services.disable') }))) return;
    await api.delete(`/v1/service-accounts/${account.id}`);
    reload();
    toast(t('saved'));
  });
  const activate = useAction(async () => {
    await api.patch(`/v1/service-accounts/${account.id}`, { status: 'active' });
    reload();
    toast(t('saved'));
  });
  const active = account.status === 'active';
  return html`<${PageHead} title=${account.name} back=${['/admin/services', t('nav.services')]}
    note=${html`<${Badge} group="user_status" value=${account.status} />`}>
    ${may('service_accounts', 'update') && html`<button class="quiet" onClick=${() => setEditing(true)}>${t('do.edit')}</button>`}
    ${active && may('service_accounts', 'delete')
      && html`<button class="quiet danger" disabled=${disable.busy} onClick=${disable.run}>${t('services.disable')}</button>`}
    ${!active && may('service_accounts', 'update')
      && html`<button disabled=${activate.busy} onClick=${activate.run}>${t('services.activate')}</button>`}
    <${WhoSees} type="service_accounts" id=${account.id} />
    ${editing && html`<${EditDialog} account=${account} close=${() => setEditing(false)} done=${reload} />`}
  <//>`;
}

/** One service account with its tokens. Roles belong to its user. */
export default function Service({ id }) {
  const load = useLoad(() => api.get(`/v1/service-accounts/${id}`), [id]);
  const facts = (account) => [
    [t('services.description'), account.description],
    [t('field.roles'), html`<a href=${`/admin/users/${id}`}>${account.roles.map(roleName).join(', ') || t('services.no_roles')}</a>`],
    [t('field.created_at'), html`<${When} at=${account.created_at} exact />`],
    [t('field.id'), html`<${RecordId} id=${id} />`],
  ];
  return html`<${Loaded} load=${load} lines=${8}>${(account) => html`
    <${Head} account=${account} reload=${load.reload} />
    <div class="stack">
      <${Card} title=${t('services.account')}><${Facts} list rows=${facts(account)} /><//>
      <${Tokens} account=${account} />
    </div>`}<//>`;
}
