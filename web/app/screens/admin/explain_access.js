import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { PERMISSIONS, roleName, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { myId, nameOf } from '../../people.js';
import { Badge } from '../../ui/display.js';
import { Field, Form, useForm } from '../../ui/form.js';
import { Card } from '../../ui/page.js';

/** Asks the server whether a user has a permission, and for the name of the role that grants it. */
async function explain(userId, { rec_type: type, permission, rec_id: id }) {
  const checks = [{ rec_type: type, permission, ...(id && { rec_id: id }) }];
  const { results: [result] } = await api.post('/v1/rbac/check', { checks, ...(userId !== myId() && { user_id: userId }) });
  if (result.source !== 'role') return result;
  const role = await api.get(`/v1/rbac/roles/${result.source_id}`).catch(() => null);
  return { ...result, name: role && roleName(role.name) };
}

function Answer({ answer }) {
  const values = { name: answer.name ?? nameOf(answer.source_id), id: answer.source_id };
  const text = answer.allowed ? t(`access.source_${answer.source}`, values) : t('access.no_source');
  return html`<p class="row">
    <${Badge} value=${answer.allowed ? t('do.yes') : t('do.no')} tone=${answer.allowed ? 'good' : 'bad'} /><span>${text}</span>
  </p>`;
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
