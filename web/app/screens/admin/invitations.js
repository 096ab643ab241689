import { html } from '../../lib.js';
import { api } from '../../api.js';
import { EVERYONE, roleName } from '../../access.js';
import { LANGUAGES, language, t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, When } from '../../ui/display.js';
import { confirm, Dialog } from '../../ui/dialog.js';
import { Loaded, toast, toastError } from '../../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../../ui/form.js';
import { Person } from '../../ui/person.js';
import { Pager, Table } from '../../ui/table.js';
import { Card } from '../../ui/page.js';

const REGISTRANT = '0193b000-0000-7000-8000-000000000004'; // for people who register themselves

const canBeGiven = (role) => role.id !== REGISTRANT && role.id !== EVERYONE;

/** Invites a person by e-mail. */
export function InviteDialog({ close, done }) {
  const roles = useLoad(() => api.get('/v1/rbac/roles', { limit: 100, sort: 'name' }));
  const initial = { email: '', display_name: '', language: language.get() };
  const form = useForm(initial, async (values) => {
    const chosen = (roles.data?.data ?? []).filter((role) => values[`role_${role.id}`]).map((role) => role.id);
    const { email, display_name: name, language: tag } = values;
    done(await api.post('/v1/invitations', { email: email.trim(), display_name: name.trim(), language: tag, roles: chosen }));
  });
  return html`<${Dialog} title=${t('invite.title')} close=${close}><${Form} form=${form}>
    <p class="fine">${t('invite.text')}</p>
    <${Field} form=${form} name="email" type="email" label=${t('credential.email')} autocomplete="off" />
    <${Field} form=${form} name="display_name" label=${t('invite.name')} optional autocomplete="off" />
    <${Field} form=${form} name="language" label=${t('language')} options=${Object.entries(LANGUAGES)} />
    <fieldset><legend>${t('field.roles')}</legend>
      <${Loaded} load=${roles} lines=${3}>${({ data }) => data.filter(canBeGiven).map((role) => html`
        <${Field} key=${role.id} form=${form} name=${`role_${role.id}`} type="checkbox" label=${roleName(role.name)} />`)}<//>
      ${form.errors.roles && html`<small class="field-error">${form.errors.roles}</small>`}
    </fieldset>
    <${Actions} form=${form} label=${t('invite.do')} cancel=${close} />
  <//><//>`;
}

function Buttons({ row, reload }) {
  const resend = () => api.post(`/v1/invitations/${row.id}/resend`, {}).then(() => {
    reload();
    toast(t('invite.sent', { to: row.email }));
  }, toastError);
  async function withdraw() {
    const text = t('invite.withdraw_text', { to: row.email });
    if (!(await confirm({ title: t('invite.withdraw'), text, action: t('invite.withdraw') }))) return;
    api.delete(`/v1/invitations/${row.id}`).then(reload, toastError);
  }
  return html`<span class="row">
    <button class="quiet small" aria-label=${t('invite.again_to', { to: row.email })} onClick=${resend}>${t('invite.again')}</button>
    <button class="quiet small danger" aria-label=${t('invite.withdraw_of', { to: row.email })} onClick=${withdraw}>
      ${t('invite.withdraw')}
    </button>
  </span>`;
}

const Invited = ({ row }) => html`<bdi>${row.email}</bdi>${row.display_name
  && html`<br /><bdi class="fine">${row.display_name}</bdi>`}`;

const Roles = ({ names }) => html`<span class="row">
  ${names.map((role) => html`<${Badge} key=${role} value=${roleName(role)} tone="none" />`)}
</span>`;

const columns = (reload) => [
  { key: 'email', label: t('credential.email'), cell: (row) => html`<${Invited} row=${row} />` },
  { key: 'roles', label: t('field.roles'), cell: (row) => html`<${Roles} names=${row.roles} />` },
  { key: 'by', minor: true, label: t('invite.by'), cell: (row) => html`<${Person} id=${row.created_by} />` },
  { key: 'sent', label: t('invite.sent_at'), cell: (row) => html`<${When} at=${row.sent_at} />` },
  {
    key: 'until', label: t('invite.until'),
    cell: (row) => (row.status === 'expired'
      ? html`<${Badge} value=${t('invite.expired')} tone="warn" />`
      : html`<${When} at=${row.expires_at} exact />`),
  },
  { key: 'do', label: '', cell: (row) => html`<${Buttons} row=${row} reload=${reload} />` },
];

const LIMIT = 20;

/** The open and expired invitations; nothing while there are none. */
export function Invitations({ load, move, offset }) {
  if (!load.data?.total) return null;
  return html`<${Card} class="flush" title=${t('invite.list')}>
    <${Table} caption=${t('invite.list')} columns=${columns(load.reload)} rows=${load.data.data} />
    <${Pager} offset=${offset} limit=${LIMIT} total=${load.data.total} onMove=${move} />
  <//>`;
}

/** Loads a page of the invitations. */
export const useInvitations = (offset, shown) => useLoad(
  () => (shown ? api.get('/v1/invitations', { limit: LIMIT, offset, sort: '-created_at' }) : null), [offset, shown],
);
