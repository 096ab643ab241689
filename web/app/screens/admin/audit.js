import { html, useId, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, TYPES } from '../../access.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { containing, useList } from '../../list.js';
import { useLoad } from '../../load.js';
import { usePeople } from '../../people.js';
import { usePreferences } from '../../preferences.js';
import { route, setQuery } from '../../router.js';
import { useStore } from '../../store.js';
import { loadStyle } from '../../style.js';
import { DateInput } from '../../ui/date_field.js';
import { Badge, When } from '../../ui/display.js';
import { ErrorBox, Notice } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf, Search } from '../../ui/filters.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';
import { UserPicker } from '../../ui/picker.js';
import { actionName, actionsNamed } from './audit_actions.js';
import { Actor, EntryDialog, RecordLink, recordNames } from './audit_entry.js';
import { ExportButtons, rangeOf } from './audit_export.js';

await loadStyle('admin');

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

/** Loads the names of the API keys, by id: a request with a key is recorded under the key's id. */
async function loadKeyNames() {
  if (!may('api_keys', 'read')) return {};
  const { data } = await api.get('/v1/api-keys', { limit: 100 });
  return Object.fromEntries(data.map((key) => [key.id, key.name]));
}

const KINDS = ['change', 'sign_in', 'denial', 'throttle', 'recovery', 'read', 'session'];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NO_FILTERS = { q: '', kind: '', rec_type: '', actor: '', rec_id: '', from: '', to: '', offset: '' };
const TONES = { change: 'none', read: 'info' }; // every other kind is a security event

/** The action of an entry, with its note and how often it happened. */
function actionText({ action, detail }) {
  const note = detail?.note === 'document_numbers' && t('audit.note_document_numbers');
  return [actionName(action), note, detail?.count > 1 && `× ${number(detail.count)}`].filter(Boolean).join(' ');
}

const columnsOf = (keyNames, names, open) => [
  { key: 'at', label: t('audit.when'), cell: (row) => html`<${When} at=${row.at} seconds />` },
  { key: 'actor', label: t('audit.actor'), cell: (row) => html`<${Actor} id=${row.actor} keyNames=${keyNames} link />` },
  {
    key: 'action', label: t('audit.action'),
    cell: (row) => html`<button class="link what" onClick=${() => open(row)}>${actionText(row)}</button>`,
  },
  {
    key: 'kind', minor: true, label: t('audit.kind'),
    cell: (row) => html`<${Badge} value=${term('audit_kind', row.kind)} tone=${TONES[row.kind] ?? 'warn'} />`,
  },
  { key: 'type', minor: true, wide: true, label: t('access.type'), cell: (row) => term('rec_type', row.rec_type) },
  { key: 'record', minor: true, wide: true, label: t('audit.record'), cell: (row) => html`<${RecordLink} entry=${row} names=${names} />` },
];

function DayFilter({ label, value, onChange }) {
  const id = useId();
  return html`<div class=${`filter${value ? ' set' : ''}`}><label for=${id}>${label}</label>
    <${DateInput} id=${id} value=${value} onChange=${onChange} /></div>`;
}

/** A filter that only links set, such as that of one person: what it selects, with a button that removes it. */
const Chosen = ({ label, children, remove }) => html`<span class="chosen">${label} ${children}
  <button class="bare" aria-label=${t('audit.show_all', { what: label })} onClick=${remove}>
    <${Icon} name="close" size=${14} />
  </button></span>`;

/** The audit trail: changes, accesses and security events, chained by their hashes. */
export default function Audit() {
  usePreferences();
  usePeople();
  const [open, setOpen] = useState(null);
  const { query } = useStore(route);
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  const list = useList('/v1/audit', {
    filters: ['rec_type', 'kind', 'actor', 'rec_id'], limit: 50, sort: '-seq', fixed: { 'search.at': rangeOf(from, to) },
    search: (text) => (UUID.test(text) ? { 'search.rec_id': text } : { 'search.action': actionsNamed(text) || containing(text) }),
  });
  const keyNames = useLoad(loadKeyNames).data ?? {};
  const names = useLoad(() => recordNames(list.data?.data ?? []), [list.data]).data ?? {};
  const { actor, rec_id: record } = list.state;
  const show = (filter) => {
    setOpen(null);
    list.set({ ...NO_FILTERS, ...filter });
  };
  const shown = { ...list, filtered: list.filtered || Boolean(from || to), clear: () => setQuery(NO_FILTERS) };
  return html`
    <${PageHead} title=${t('nav.audit')} note=${t('audit.note')}><${ExportButtons} from=${from} to=${to} /><//>
    <${ChainState} />
    <${Filters}>
      <${Search} label=${t('audit.search')} value=${list.state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('audit.kind')} value=${list.state.kind} onChange=${(kind) => list.set({ kind })}
        options=${optionsOf(KINDS, (kind) => term('audit_kind', kind))} />
      <${Filter} label=${t('access.type')} value=${list.state.rec_type} onChange=${(type) => list.set({ rec_type: type })}
        options=${optionsOf(TYPES, (type) => term('rec_type', type))} />
      <${DayFilter} label=${t('audit.from')} value=${from} onChange=${(day) => list.set({ from: day })} />
      <${DayFilter} label=${t('audit.to')} value=${to} onChange=${(day) => list.set({ to: day })} />
      <div class="filter person"><${UserPicker} label=${t('audit.person')} hint="" pick=${(row) => row && show({ actor: row.id })} /></div>
      ${actor && html`<${Chosen} label=${t('audit.actor')} remove=${() => list.set({ actor: '' })}>
        <${Actor} id=${actor} keyNames=${keyNames} /><//>`}
      ${record && html`<${Chosen} label=${t('audit.record')} remove=${() => list.set({ rec_id: '' })}>
        <span class="code">${record}</span><//>`}
    <//>
    <${RecordList} list=${shown} title=${t('nav.audit')} columns=${columnsOf(keyNames, names, setOpen)} lines=${10}
      rowsOf=${(page) => page.data.map((row) => ({ ...row, id: row.seq }))} />
    ${open && html`<${EntryDialog} entry=${open} keyNames=${keyNames} names=${names} show=${show}
      close=${() => setOpen(null)} />`}`;
}
