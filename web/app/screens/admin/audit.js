import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { useList } from '../../list.js';
import { learnKey, nameOf, usePeople } from '../../people.js';
import { usePrefs } from '../../prefs.js';
import { may, TYPES } from '../../access.js';
import { Badge, Facts, Pager, Table } from '../../ui/data.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, ErrorBox, Loaded, Notice } from '../../ui/feedback.js';
import { Filter, Filters } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

/** Whether the chain of hashes holds, as far as the server has walked along it. */
function Chain() {
  const load = useLoad(() => api.get('/v1/audit/status'));
  const { data: chain } = load;
  if (load.error) return html`<${ErrorBox} error=${load.error} retry=${load.reload} />`;
  if (!chain) return null;
  if (chain.first_bad) return html`<${Notice} tone="bad" title=${t('audit.broken')}>${t('audit.broken_text', { id: chain.first_bad.seq })} ${chain.first_bad.message}<//>`;
  const at = { n: number(chain.verified_to), at: dateTime(chain.checked_at) };
  return chain.complete ? html`<${Notice} tone="good" title=${t('audit.intact')}>${t('audit.intact_text', at)}<//>` : html`<${Notice} title=${t('audit.walking')}>${t('audit.walking_text', { ...at, total: number(chain.entries) })}<//>`;
}

const NIL = '00000000-0000-0000-0000-000000000000'; // The service itself.
const short = (hash) => (hash ? html`<span class="code hash" title=${hash}>${String(hash).slice(0, 10)}</span>` : '');

/** An API key acts under its own id; its name comes from the list of keys. */
async function learnKeys() {
  if (!may('api_keys', 'read')) return;
  const { data } = await api.get('/v1/api-keys', { limit: 100 });
  for (const key of data) learnKey(key.id, t('audit.key', { name: key.name }));
}

const SCREENS = { customers: '/customers/', personas: '/personas/', payers: '/payers/', chats: '/chats/', users: '/admin/users/', roles: '/admin/roles/' };

/** One entry with its hashes: those of the record before and after, and those that chain the entries. */
function Entry({ entry, close }) {
  const hash = (value) => value && html`<span class="code">${value}</span>`;
  const place = SCREENS[entry.rec_type];
  const { detail } = entry;
  return html`<${Dialog} title=${term('audit_action', entry.action)} close=${close} wide><${Facts} list rows=${[
    [t('audit.seq'), number(entry.seq)], [t('audit.when'), dateTime(entry.at)], [t('audit.kind'), term('audit_kind', entry.kind)], [t('audit.who'), whoOf(entry)],
    ...(detail ? [[t('audit.count'), number(detail.count)], [t('audit.first_at'), dateTime(detail.first_at)], [t('audit.last_at'), dateTime(detail.last_at)], [t('audit.endpoint'), hash(detail.endpoint)], [t('audit.subject'), hash(detail.subject)]] : []),
    [t('audit.network'), hash(entry.network)], [t('audit.session'), hash(entry.session_id)], [t('audit.request'), hash(entry.request_id)], [t('why.type'), term('rec_type', entry.rec_type)],
    [t('audit.record'), place && entry.rec_id ? html`<a class="code" href=${place + entry.rec_id}>${entry.rec_id}</a>` : hash(entry.rec_id)],
    [t('audit.before'), hash(entry.before_hash)], [t('audit.after'), hash(entry.after_hash)], [t('audit.previous'), hash(entry.prev_hash)], [t('audit.hash'), hash(entry.hash)],
  ]} /><//>`;
}

const whoOf = (entry) => (!entry.actor || entry.actor === NIL ? html`<span class="none">${t('audit.system')}</span>` : nameOf(entry.actor));

const KINDS = ['change', 'sign_in', 'denial', 'throttle', 'recovery', 'read'];

/** What an entry is about, in words where it is a security event. */
const What = ({ row }) => html`${term('audit_action', row.action)}${row.detail?.note === 'document_numbers' && html` ${t('audit.note_document_numbers')}`}${row.detail?.count > 1 && html` × ${number(row.detail.count)}`}`;

/** Who changed what or looked at it, what was refused, and when; the entries are chained by their hashes. */
export default function Audit() {
  usePrefs();
  usePeople();
  const [open, setOpen] = useState(null);
  const list = useList('/v1/audit', { filters: ['rec_type', 'kind'], limit: 50, sort: '-seq' });
  const keys = useLoad(learnKeys); // Before names are asked for: a key is no user.
  const columns = [
    { key: 'at', label: t('audit.when'), cell: (row) => html`<span class="num">${dateTime(row.at)}</span>` },
    { key: 'who', label: t('audit.who'), cell: (row) => (keys.loading ? '…' : whoOf(row)) },
    { key: 'what', label: t('audit.what'), cell: (row) => html`<button class="link what" onClick=${() => setOpen(row)}><${What} row=${row} /></button>` },
    { key: 'kind', minor: true, label: t('audit.kind'), cell: (row) => html`<${Badge} value=${term('audit_kind', row.kind)} tone=${row.kind === 'change' ? 'none' : row.kind === 'read' ? 'info' : 'warn'} />` },
    { key: 'type', minor: true, wide: true, label: t('why.type'), cell: (row) => term('rec_type', row.rec_type) },
    { key: 'hash', minor: true, label: t('audit.hash'), cell: (row) => short(row.hash) },
  ];
  return html`
    <${PageHead} title=${t('nav.audit')} note=${t('audit.note')} />
    <${Chain} />
    <${Filters}><${Filter} label=${t('audit.kind')} value=${list.state.kind} options=${KINDS.map((one) => [one, term('audit_kind', one)])} onChange=${(value) => list.set({ kind: value })} /><${Filter} label=${t('why.type')} value=${list.state.rec_type} options=${TYPES.map((one) => [one, term('rec_type', one)])} onChange=${(value) => list.set({ rec_type: value })} /><//>
    <section class="card flush" aria-label=${t('nav.audit')}><${Loaded} load=${list} lines=${10}>${(page) => (page.data.length
      ? html`<${Table} caption=${t('nav.audit')} columns=${columns} rows=${page.data.map((row) => ({ ...row, id: row.seq }))} /><${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
      : html`<${Empty} icon="audit" title=${t('list.no_match')} />`)}<//></section>
    ${open && html`<${Entry} entry=${open} close=${() => setOpen(null)} />`}`;
}
