import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { myId, roleName } from '../../access.js';
import { t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { useLoad } from '../../load.js';
import { nameOf, usePeople } from '../../people.js';
import { Badge, Facts, When } from '../../ui/display.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, toast, useAction } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../../ui/filters.js';
import { number } from '../../format.js';
import { PageHead } from '../../ui/page.js';
import { Person } from '../../ui/person.js';
import { RecordList } from '../../ui/record_list.js';
import { Validity } from '../../ui/validity.js';

const KINDS = ['role', 'type', 'record', 'endpoint'];

const holderOf = (row) => (row.user_id ? { user_id: row.user_id } : { role_id: row.role_id });
const holderName = (row) => (row.user_id ? nameOf(row.user_id) : roleName(row.role_name));
const Holder = ({ row }) => (row.user_id
  ? html`<${Person} id=${row.user_id} />`
  : html`<${Badge} value=${roleName(row.role_name)} tone="none" />`);

/** The role, or what a grant is on, with its permissions and its term. */
function Right({ row }) {
  const what = row.kind === 'role' ? roleName(row.role_name) : row.endpoint ?? term('rec_type', row.rec_type);
  return html`<span>${what}${row.rec_id && html` <span class="code">${row.rec_id}</span>`}
    ${row.permissions.map((one) => html` <${Badge} key=${one} group="permission" value=${one} tone="none" />`)}
    ${' '}<${Validity} term=${row} /></span>`;
}

/** The earlier reviews of a user or a role. */
function Reviews({ holder }) {
  const [[name, id]] = Object.entries(holder);
  const load = useLoad(() => api.get('/v1/rbac/reviews', { limit: 5, sort: '-created_at', [`search.${name}`]: id }), [id]);
  return html`<${Loaded} load=${load} lines=${2}>${({ data }) => (data.length === 0
    ? html`<p class="fine">${t('access_review.never')}</p>`
    : html`<${Facts} list rows=${data.map((one) => [
      html`<${When} at=${one.created_at} exact />`,
      html`${t(`access_review.${one.decision}`)} · <${Person} id=${one.created_by} />`,
    ])} />`)}<//>`;
}

function ReviewDialog({ row, close, done, showAll }) {
  const holder = holderOf(row);
  const name = holderName(row);
  const kind = row.user_id ? 'user' : 'role';
  const decide = useAction(async (decision) => {
    const text = t(`access_review.remove_${kind}`, { name });
    if (decision === 'remove' && !(await confirm({ title: t('access_review.remove'), text, action: t('access_review.remove') }))) return;
    const { remaining } = await api.post('/v1/rbac/reviews', { ...holder, decision });
    toast(decision === 'remove' && remaining > 0 ? t('access_review.remaining', { count: number(remaining) }) : t('access_review.done'));
    done();
  });
  const own = row.user_id === myId();
  return html`<${Dialog} title=${t('access_review.of', { name })} close=${close}>
    <p>${own ? t('access_review.own') : t(`access_review.text_${kind}`)}</p>
    <${Reviews} holder=${holder} />
    <div class="actions">
      ${!own && html`<button disabled=${decide.busy} onClick=${() => decide.run('keep')}>${t('access_review.keep')}</button>`}
      ${!own && html`<button class="quiet danger" disabled=${decide.busy} onClick=${() => decide.run('remove')}>
        ${t('access_review.remove')}
      </button>`}
      <button class="quiet" onClick=${() => showAll(holder)}>${t('access_review.show_all')}</button>
      <button class="quiet" onClick=${close}>${t('do.close')}</button>
    </div>
  <//>`;
}

const columnsOf = (open) => [
  {
    key: 'holder', label: t('access_review.holder'),
    cell: (row) => html`<button class="link" onClick=${() => open(row)}><${Holder} row=${row} /></button>`,
  },
  { key: 'kind', label: t('access_review.kind'), sort: 'kind', cell: (row) => t(`access_review.kind_${row.kind}`) },
  { key: 'right', label: t('access_review.right'), cell: (row) => html`<${Right} row=${row} />` },
  { key: 'created', label: t('access_review.since'), sort: 'created_at', num: true, cell: (row) => html`<${When} at=${row.created_at} />` },
  { key: 'by', minor: true, label: t('access_review.by'), cell: (row) => html`<${Person} id=${row.created_by} />` },
  { key: 'used', label: t('access_review.used'), sort: 'last_used_at', num: true, cell: (row) => html`<${When} at=${row.last_used_at} />` },
  {
    key: 'reviewed', label: t('access_review.reviewed'), sort: 'reviewed_at', num: true,
    cell: (row) => html`<${When} at=${row.reviewed_at} />`,
  },
];

/** The list of held rights, with the decision to keep or remove all rights of a user or a role. */
export default function AccessReview() {
  usePeople();
  const [open, setOpen] = useState(null);
  const list = useList('/v1/rbac/review', { filters: ['kind', 'user_id', 'role_id'], sort: '-created_at' });
  const done = () => {
    setOpen(null);
    list.reload();
  };
  const showAll = (holder) => {
    setOpen(null);
    list.set({ kind: '', user_id: '', role_id: '', ...holder });
  };
  return html`
    <${PageHead} title=${t('nav.access_review')} note=${t('access_review.note')} />
    <${Filters}>
      <${Filter} label=${t('access_review.kind')} value=${list.state.kind} onChange=${(kind) => list.set({ kind })}
        options=${optionsOf(KINDS, (kind) => t(`access_review.kind_${kind}`))} />
    <//>
    <${RecordList} list=${list} title=${t('nav.access_review')} columns=${columnsOf(setOpen)}
      empty=${html`<${Empty} icon="roles" title=${t('access_review.none')}
        action=${html`<a class="button quiet" href="/admin/users">${t('nav.users')}</a>`}>${t('access_review.none_text')}<//>`} />
    ${open && html`<${ReviewDialog} row=${open} close=${() => setOpen(null)} done=${done} showAll=${showAll} />`}`;
}
