import { html } from '../../lib.js';
import { mayAny, roleName } from '../../access.js';
import { api } from '../../api.js';
import { fullName } from '../../customers.js';
import { dateTime, exactTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Facts } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Loaded } from '../../ui/feedback.js';
import { Person } from '../../ui/person.js';
import { actionName } from './audit_actions.js';

const NIL = '00000000-0000-0000-0000-000000000000'; // the actor of Kontor's own actions

/** The actor of an entry: Kontor itself, an API key, or a user with their sign-in name. */
export function Actor({ id, keyNames, link }) {
  if (!id || id === NIL) return html`<span class="none">${t('audit.system')}</span>`;
  if (keyNames[id]) return t('audit.key', { name: keyNames[id] });
  const person = html`<${Person} id=${id} signIn />`;
  return link ? html`<a href=${`/admin/users/${id}`}>${person}</a>` : person;
}

const SCREENS = {
  customers: '/customers/', personas: '/personas/', payers: '/payers/', chats: '/chats/', users: '/admin/users/',
  user_roles: '/admin/users/', profiles: '/admin/users/', roles: '/admin/roles/', service_accounts: '/admin/services/',
  webhooks: '/admin/webhooks/',
  relationships: '/customers/', legal_holds: '/customers/',
};
const USERS = ['users', 'user_roles', 'profiles'];

const code = (value) => value && html`<span class="code">${value}</span>`;

const NAMED = {
  customers: ['/v1/customers', fullName], personas: ['/v1/personas', fullName], tasks: ['/v1/tasks', (one) => one.title],
  roles: ['/v1/rbac/roles', (one) => roleName(one.name)], service_accounts: ['/v1/service-accounts', (one) => one.name],
};
const OF_CUSTOMERS = ['relationships', 'legal_holds']; // types whose records have the ids of customers

/** Loads the names of the records of entries, by id; of those that the caller may read. */
export async function recordNames(entries) {
  const ids = {};
  for (const { rec_type: type, rec_id: id } of entries) {
    const of = OF_CUSTOMERS.includes(type) ? 'customers' : type;
    if (id && NAMED[of] && mayAny(of)) (ids[of] ??= new Set()).add(id);
  }
  const names = await Promise.all(Object.entries(ids).map(async ([type, wanted]) => {
    const [path, nameOf] = NAMED[type];
    const { data } = await api.get(path, { limit: 100, 'search.id': [...wanted].slice(0, 100).join(',') }).catch(() => ({ data: [] }));
    return data.map((one) => [one.id, nameOf(one)]);
  }));
  return Object.fromEntries(names.flat());
}

/** The record of an entry, by its name where it is known, as a link where it has a screen. */
export function RecordLink({ entry: { rec_type: type, rec_id: id }, names = {} }) {
  if (!id || id === NIL) return '–';
  const known = names[id] ? html`<bdi>${names[id]}</bdi>` : html`<span class="code" title=${id}>${id.slice(0, 8)}…</span>`;
  const shown = USERS.includes(type) ? html`<${Person} id=${id} />` : known;
  return SCREENS[type] ? html`<a href=${SCREENS[type] + id}>${shown}</a>` : shown;
}

const Value = ({ value, cut, missing }) => (value === null
  ? html`<span class="none">${missing}</span>`
  : html`<bdi>${value}</bdi>${cut && '…'}`);

function Change({ change }) {
  const name = change.field.split('.').map((part) => term('field', part)).join(' › ');
  return html`<tr><th scope="row">${change.field === '…' ? t('audit.more_fields') : name}</th>
    <td data-label=${t('audit.was')}><${Value} value=${change.before} cut=${change.cut} missing=${t('audit.empty')} /></td>
    <td data-label=${t('audit.is')}><${Value} value=${change.after} cut=${change.cut} missing=${t('audit.empty')} /></td>
  </tr>`;
}

/** The changed fields of an entry, before and after. */
function Changes({ entry }) {
  const load = useLoad(() => api.get(`/v1/audit/${entry.seq}`), [entry.seq]);
  return html`<h3>${t('audit.changes')}</h3><${Loaded} load=${load} lines=${3}>${({ changes, changes_deleted: deleted }) => {
    if (deleted) return html`<p class="fine">${t('audit.changes_deleted')}</p>`;
    return html`<div class="table-box" tabindex="0" role="group" aria-label=${t('audit.changes')}><table class="data changes">
      <caption class="sr">${t('audit.changes')}</caption>
      <thead><tr>${['field', 'was', 'is'].map((key) => html`<th key=${key} scope="col">${t(`audit.${key}`)}</th>`)}</tr></thead>
      <tbody>${changes.map((change) => html`<${Change} key=${change.field + change.before + change.after} change=${change} />`)}</tbody>
    </table></div>`;
  }}<//>`;
}

/** The facts of an entry that stands for several events of the same kind. */
const repetitionFacts = (detail) => (detail ? [
  [t('audit.count'), number(detail.count)],
  [t('audit.first_at'), dateTime(detail.first_at)],
  [t('audit.last_at'), dateTime(detail.last_at)],
  [t('audit.endpoint'), code(detail.endpoint)],
  [t('audit.subject'), code(detail.subject)],
] : []);

/** Links that show the other entries about the same person or record. */
const Related = ({ entry, show }) => html`<p class="row">
  ${entry.actor !== NIL && html`<button class="quiet small" onClick=${() => show({ actor: entry.actor })}>${t('audit.by_actor')}</button>`}
  ${entry.rec_id && html`<button class="quiet small" onClick=${() => show({ rec_id: entry.rec_id })}>${t('audit.of_record')}</button>`}
</p>`;

/** One entry: what changed, who did it, and the hashes of the record and of the chain. */
export function EntryDialog({ entry, keyNames, names, close, show }) {
  return html`<${Dialog} title=${actionName(entry.action)} close=${close} wide>
    ${entry.has_changes && html`<${Changes} entry=${entry} />`}
    <${Related} entry=${entry} show=${show} />
    <${Facts} list rows=${[
      [t('audit.seq'), number(entry.seq)],
      [t('audit.when'), exactTime(entry.at)],
      [t('audit.kind'), term('audit_kind', entry.kind)],
      [t('audit.actor'), html`<${Actor} id=${entry.actor} keyNames=${keyNames} link />`],
      ...repetitionFacts(entry.detail),
      [t('audit.network'), code(entry.network)],
      [t('audit.session'), code(entry.session_id)],
      [t('audit.request'), code(entry.request_id)],
      [t('access.type'), term('rec_type', entry.rec_type)],
      [t('audit.record'), entry.rec_id && html`<${RecordLink} entry=${entry} names=${names} /> ${code(entry.rec_id)}`],
      [t('audit.before'), code(entry.before_hash)],
      [t('audit.after'), code(entry.after_hash)],
      [t('audit.previous'), code(entry.prev_hash)],
      [t('audit.hash'), code(entry.hash)],
    ]} /><//>`;
}
