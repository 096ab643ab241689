import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { roleName } from '../../access.js';
import { t, term } from '../../i18n.js';
import { containing } from '../../list.js';
import { useLoad } from '../../load.js';
import { usePeople } from '../../people.js';
import { loadStyle } from '../../style.js';
import { Badge } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Loaded } from '../../ui/feedback.js';
import { Filter, Filters, Search } from '../../ui/filters.js';
import { Person } from '../../ui/person.js';
import { Pager } from '../../ui/table.js';

await loadStyle('admin');

const LIMIT = 20;
const ADMINISTRATOR = '0193b000-0000-7000-8000-000000000001';

/** Says in words why a user has a permission: the chain from the user over the role and its grant to the record. */
export function reasonText(reason, type) {
  if (reason.source === 'owner') return t(`who.relation_${reason.relation}`);
  if (reason.role_id === ADMINISTRATOR) return t('who.administrator');
  const values = { role: roleName(reason.role_name), permission: term('permission', reason.granted), type: term('rec_type', type) };
  return t(`who.${reason.source}_${reason.scope}`, values);
}

function Reason({ reason, type }) {
  const text = reasonText(reason, type);
  return html`<li>${reason.role_id ? html`<a href=${`/admin/roles/${reason.role_id}`}>${text}</a>` : text}</li>`;
}

const Holder = ({ holder, type }) => html`<li>
  <p class="row">
    <a href=${`/admin/${holder.kind === 'service' ? 'services' : 'users'}/${holder.user_id}`}><${Person} id=${holder.user_id} signIn /></a>
    ${holder.status !== 'active' && html`<${Badge} group="user_status" value=${holder.status} />`}
    ${!holder.calls && html`<${Badge} value=${t('who.no_endpoint')} tone="warn" />`}</p>
  <ul class="reasons">${holder.reasons.map((reason, i) => html`<${Reason} key=${i} reason=${reason} type=${type} />`)}</ul>
</li>`;

const WHAT = ['read', 'update', 'delete'];

/** The users who may see, change or delete a record, with the reasons. */
export default function WhoSeesDialog({ type, id, close }) {
  usePeople();
  const [state, setState] = useState({ permission: 'read', offset: 0, q: '' });
  const set = (changes) => setState((was) => ({ ...was, offset: 0, ...changes }));
  const { permission, offset, q } = state;
  const load = useLoad(() => api.get('/v1/rbac/explain', {
    type, id, permission, limit: LIMIT, offset, sort: 'display_name,user_id', 'search.display_name': q && containing(q),
  }), [type, id, JSON.stringify(state)]);
  return html`<${Dialog} title=${t('access.who_sees')} close=${close} wide>
    <p class="fine">${t('who.note')}</p>
    <${Filters}>
      <${Filter} label=${t('who.what')} value=${permission} all=${null} onChange=${(value) => set({ permission: value })}
        options=${WHAT.map((one) => [one, t(`who.may_${one}`)])} />
      <${Search} label=${t('admin.search_users')} value=${q} onSearch=${(text) => set({ q: text })} />
    <//>
    <div aria-live="polite"><${Loaded} load=${load} lines=${5}>${(page) => html`
      ${page.data.length
        ? html`<ul class="items holders">${page.data.map((holder) => html`
            <${Holder} key=${holder.user_id} holder=${holder} type=${type} />`)}</ul>`
        : html`<p>${t('who.nobody')}</p>`}
      <${Pager} offset=${offset} limit=${LIMIT} total=${page.total} onMove=${(to) => set({ offset: to })} />`}<//></div>
  <//>`;
}
