import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { myId, PERMISSIONS, roleName, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { nameOf } from '../../people.js';
import { Badge } from '../../ui/data.js';
import { Field, Form, useForm } from '../../ui/form.js';
import { Card } from '../../ui/page.js';

/** Asks the server itself, for the user in question; the name of the role comes from the list of roles. */
async function explain(userId, { rec_type: type, permission, rec_id: id }) {
  const checks = [{ rec_type: type, permission, ...(id && { rec_id: id }) }];
  const { results: [result] } = await api.post('/v1/rbac/check', { checks, ...(userId !== myId() && { user_id: userId }) });
  if (result.source !== 'role') return result;
  const role = await api.get(`/v1/rbac/roles/${result.source_id}`).catch(() => null);
  return { ...result, name: role && roleName(role.name) };
}

/** The question "why may X do Y", answered with the source of the right. */
export function Why({ userId }) {
  const [answer, setAnswer] = useState(null);
  const form = useForm({ rec_type: 'customers', permission: 'read', rec_id: '' }, async (values) => {
    setAnswer(null);
    setAnswer(await explain(userId, { ...values, rec_id: values.rec_id.trim() }));
  });
  return html`<${Card} title=${t('why.title')}>
    <${Form} form=${form}>
      <div class="fields">
        <${Field} form=${form} name="permission" label=${t('why.permission')} options=${PERMISSIONS.map((one) => [one, term('permission', one)])} />
        <${Field} form=${form} name="rec_type" label=${t('why.type')} options=${TYPES.map((one) => [one, term('rec_type', one)])} />
        <${Field} class="wide" form=${form} name="rec_id" label=${t('why.record')} optional spellcheck="false" />
      </div>
      <div class="actions"><button type="submit" class="quiet" disabled=${form.busy}>${t('why.ask')}</button></div>
    <//>
    <div aria-live="polite">${answer && html`<p class="row"><${Badge} value=${answer.allowed ? t('why.yes') : t('why.no')} tone=${answer.allowed ? 'good' : 'bad'} />
      <span>${answer.allowed ? t(`why.source_${answer.source}`, { name: answer.name ?? nameOf(answer.source_id), id: answer.source_id }) : t('why.no_source')}</span></p>`}</div>
  <//>`;
}

