import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { may, PERMISSIONS, roleName, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { myId, nameOf } from '../../people.js';
import { Badge } from '../../ui/display.js';
import { Field, Form, useForm } from '../../ui/form.js';
import { Card } from '../../ui/page.js';
import { reasonText } from './who_sees_dialog.js';

const ON_RECORDS = ['read', 'update', 'delete'];

/** Returns all reasons for a permission on a record, which only callers who administer roles or audit may read; null for others. */
async function reasonsOf(userId, { rec_type: type, permission, rec_id: id }) {
  if (!id || !ON_RECORDS.includes(permission) || !(may('grants', 'read_all') || may('audit', 'read'))) return null;
  const { data } = await api.get('/v1/rbac/explain', { type, id, permission, 'search.user_id': userId });
  return data[0] ?? null;
}

/** Asks the server whether a user has a permission, and for the reasons, or for the name of the role that grants it. */
async function explain(userId, asked) {
  const { rec_type: type, permission, rec_id: id } = asked;
  const checks = [{ rec_type: type, permission, ...(id && { rec_id: id }) }];
  const { results: [result] } = await api.post('/v1/rbac/check', { checks, ...(userId !== myId() && { user_id: userId }) });
  const holder = result.allowed ? await reasonsOf(userId, asked) : null;
  if (holder) return { ...result, type, holder };
  if (result.source !== 'role') return result;
  const role = await api.get(`/v1/rbac/roles/${result.source_id}`).catch(() => null);
  return { ...result, name: role && roleName(role.name) };
}

function Answer({ answer }) {
  const values = { name: answer.name ?? nameOf(answer.source_id), id: answer.source_id };
  const short = answer.allowed ? t(`access.source_${answer.source}`, values) : t(answer.missing ? 'access.missing' : 'access.no_source');
  const reasons = answer.holder?.reasons.map((reason) => reasonText(reason, answer.type));
  return html`<p class="row">
      <${Badge} value=${answer.allowed ? t('do.yes') : t('do.no')} tone=${answer.allowed ? 'good' : 'bad'} />
      ${!reasons && html`<span>${short}</span>`}
    </p>
    ${reasons && html`<ul class="reasons">${reasons.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`}
    ${answer.holder && !answer.holder.calls && html`<p class="fine">${t('who.no_endpoint')}</p>`}`;
}

/** Explains whether and why a user has a permission. */
export function ExplainAccess({ userId }) {
  const [answer, setAnswer] = useState(null);
  const form = useForm({ rec_type: 'customers', permission: 'read', rec_id: '' }, async (values) => {
    setAnswer(null);
    setAnswer(await explain(userId, { ...values, rec_id: values.rec_id.trim() }));
  });
  return html`<${Card} title=${t('access.title')}>
    <p class="fine">${t('access.scope_note')}</p>
    <${Form} form=${form}>
      <div class="fields">
        <${Field} form=${form} name="permission" label=${t('access.permission')}
          options=${PERMISSIONS.map((one) => [one, term('permission', one)])} />
        <${Field} form=${form} name="rec_type" label=${t('access.type')} options=${TYPES.map((one) => [one, term('rec_type', one)])} />
        <${Field} class="wide" form=${form} name="rec_id" label=${t('access.record')} optional spellcheck=${false} />
      </div>
      <div class="actions"><button type="submit" class="quiet" disabled=${form.busy}>${t('access.check')}</button></div>
    <//>
    <div aria-live="polite">${answer && html`<${Answer} answer=${answer} />`}</div>
  <//>`;
}
