import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { useList } from '../../list.js';
import { usePeople } from '../../people.js';
import { usePreferences } from '../../preferences.js';
import { may, TYPES } from '../../access.js';
import { Badge, Facts } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { ErrorBox, Notice } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { RecordList } from '../../ui/record_list.js';

/** The result of the server's latest check of the chain of hashes. */
function ChainState() {
  const load = useLoad(() => api.get('/v1/audit/status'));
  const { data: chain } = load;
  if (load.error) return html`<${ErrorBox} error=${load.error} retry=${load.reload} />`;
  if (!chain) return null;
  if (chain.first_bad) {
    const { seq, message } = chain.first_bad;
    return html`<${Notice} tone="bad" title=${t('audit.broken')}>${t('audit.broken_text', { id: seq })} ${message}<//>`;
  }
  const values = { n: number(chain.verified_to), at: dateTime(chain.checked_at), total: number(chain.entries) };
  return chain.complete
    ? html`<${Notice} tone="good" title=${t('audit.intact')}>${t('audit.intact_text', values)}<//>`
    : html`<${Notice} title=${t('audit.checking')}>${t('audit.checking_text', values)}<//>`;
}

const NIL = '00000000-0000-0000-0000-000000000000'; // the actor of Kontor's own actions

/** Loads the names of the API keys, by id: a request with a key is recorded under the key's id. */
async function loadKeyNames() {
  if (!may('api_keys', 'read')) return {};
  const { data } = await api.get('/v1/api-keys', { limit: 100 });
  return Object.fromEntries(data.map((key) => [key.id, key.name]));
}

/** The actor of an entry: Kontor itself, an API key, or a user with their sign-in name. */
function Actor({ id, keyNames }) {
  if (!id || id === NIL) return html`<span class="none">${t('audit.system')}</span>`;
  return keyNames[id] ? t('audit.key', { name: keyNames[id] }) : html`<${Person} id=${id} signIn />`;
}

const SCREENS = {
  customers: '/customers/', personas: '/personas/', payers: '/payers/', chats: '/chats/', users: '/admin/users/', roles: '/admin/roles/',
};

const code = (value) => value && html`<span class="code">${value}</span>`;

function RecordLink({ entry: { rec_type: type, rec_id: id } }) {
  return SCREENS[type] && id ? html`<a class="code" href=${SCREENS[type] + id}>${id}</a>` : code(id) || '–';
}

/** The facts of an entry that stands for several events of the same kind. */
const repetitionFacts = (detail) => (detail ? [
  [t('audit.count'), number(detail.count)],
  [t('audit.first_at'), dateTime(detail.first_at)],
  [t('audit.last_at'), dateTime(detail.last_at)],
  [t('audit.endpoint'), code(detail.endpoint)],
  [t('audit.subject'), code(detail.subject)],
] : []);

/** One entry with its hashes: of the record before and after, and of the chain. */
function EntryDialog({ entry, keyNames, close }) {
  return html`<${Dialog} title=${term('audit_action', entry.action)} close=${close} wide><${Facts} list rows=${[
    [t('audit.seq'), number(entry.seq)],
    [t('audit.when'), dateTime(entry.at)],
    [t('audit.kind'), term('audit_kind', entry.kind)],
    [t('audit.actor'), html`<${Actor} id=${entry.actor} keyNames=${keyNames} />`],
    ...repetitionFacts(entry.detail),
    [t('audit.network'), code(entry.network)],
    [t('audit.session'), code(entry.session_id)],
    [t('audit.request'), code(entry.request_id)],
    [t('access.type'), term('rec_type', entry.rec_type)],
    [t('audit.record'), html`<${RecordLink} entry=${entry} />`],
    [t('audit.before'), code(entry.before_hash)],
    [t('audit.after'), code(entry.after_hash)],
    [t('audit.previous'), code(entry.prev_hash)],
    [t('audit.hash'), code(entry.hash)],
  ]} /><//>`;
}

const KINDS = ['change', 'sign_in', 'denial', 'throttle', 'recovery', 'read', 'session'];
const TONES = { change: 'none', read: 'info' }; // every other kind is a security event

/** The action of an entry, with its note and how often it happened. */
function actionText({ action, detail }) {
  const note = detail?.note === 'document_numbers' && t('audit.note_document_numbers');
  return [term('audit_action', action), note, detail?.count > 1 && `× ${number(detail.count)}`].filter(Boolean).join(' ');
}

const shortHash = (hash) => hash && html`<span class="code hash" title=${hash}>${hash.slice(0, 10)}</span>`;

const columnsOf = (keyNames, open) => [
  { key: 'at', label: t('audit.when'), cell: (row) => html`<span class="num">${dateTime(row.at)}</span>` },
  { key: 'actor', label: t('audit.actor'), cell: (row) => html`<${Actor} id=${row.actor} keyNames=${keyNames} />` },
  {
    key: 'action', label: t('audit.action'),
    cell: (row) => html`<button class="link what" onClick=${() => open(row)}>${actionText(row)}</button>`,
  },
  {
    key: 'kind', minor: true, label: t('audit.kind'),
    cell: (row) => html`<${Badge} value=${term('audit_kind', row.kind)} tone=${TONES[row.kind] ?? 'warn'} />`,
  },
  { key: 'type', minor: true, wide: true, label: t('access.type'), cell: (row) => term('rec_type', row.rec_type) },
  { key: 'hash', minor: true, label: t('audit.hash'), cell: (row) => shortHash(row.hash) },
];

/** The audit trail: changes, accesses and security events, chained by their hashes. */
export default function Audit() {
  usePreferences();
  usePeople();
  const [open, setOpen] = useState(null);
  const list = useList('/v1/audit', { filters: ['rec_type', 'kind'], limit: 50, sort: '-seq' });
  const keyNames = useLoad(loadKeyNames).data ?? {};
  return html`
    <${PageHead} title=${t('nav.audit')} note=${t('audit.note')} />
    <${ChainState} />
    <${Filters}>
      <${Filter} label=${t('audit.kind')} value=${list.state.kind} onChange=${(kind) => list.set({ kind })}
        options=${optionsOf(KINDS, (kind) => term('audit_kind', kind))} />
      <${Filter} label=${t('access.type')} value=${list.state.rec_type} onChange=${(type) => list.set({ rec_type: type })}
        options=${optionsOf(TYPES, (type) => term('rec_type', type))} />
    <//>
    <${RecordList} list=${list} title=${t('nav.audit')} columns=${columnsOf(keyNames, setOpen)} lines=${10}
      rowsOf=${(page) => page.data.map((row) => ({ ...row, id: row.seq }))} />
    ${open && html`<${EntryDialog} entry=${open} keyNames=${keyNames} close=${() => setOpen(null)} />`}`;
}
