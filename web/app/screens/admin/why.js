import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { myId, PERMISSIONS, TYPES } from '../../access.js';
import { t, term } from '../../i18n.js';
import { nameOf } from '../../people.js';
import { Badge } from '../../ui/data.js';
import { Field, Form, useForm } from '../../ui/form.js';
import { Card } from '../../ui/page.js';
import { roleName } from './users.js';

const NIL = '00000000-0000-0000-0000-000000000000';

async function allPages(path, query) {
  const rows = [];
  for (;;) {
    const page = await api.get(path, { ...query, limit: 100, offset: rows.length });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

const permits = (grant, permission) => (grant.permissions ?? [grant.permission]).includes(permission);

/**
 * Why somebody else may do something: the grants that reach him are read and matched as the server does. For the
 * caller himself the server's own check answers, rights of ownership included.
 */
async function explain(userId, roles, { rec_type: type, permission, rec_id: id }) {
  if (userId === myId()) {
    const { results } = await api.post('/v1/rbac/check', { checks: [{ rec_type: type, permission, ...(id && { rec_id: id }) }] });
    return results.map((result) => ({ ...result, exact: true }))[0];
  }
  const [all, grants] = await Promise.all([allPages('/v1/rbac/roles'), allPages('/v1/rbac/grants')]);
  const held = all.filter((role) => roles.some((one) => roleName(one) === role.name || one === role.id || one.id === role.id));
  const admin = held.find((role) => role.name === 'Administrator');
  if (admin) return { allowed: true, source: 'role', source_id: admin.id, name: admin.name };
  const fits = (grant) => grant.rec_type === type && permits(grant, permission) && (!grant.rec_id || grant.rec_id === NIL || grant.rec_id === id);
  const byUser = grants.find((grant) => grant.user_id === userId && fits(grant));
  if (byUser) return { allowed: true, source: 'user', source_id: userId };
  const byRole = grants.find((grant) => held.some((role) => role.id === grant.role_id) && fits(grant));
  if (byRole) return { allowed: true, source: 'role', source_id: byRole.role_id, name: held.find((role) => role.id === byRole.role_id).name };
  return { allowed: false, source: '', source_id: NIL };
}

/** The question "why may X do Y", answered with the source of the right. */
export function Why({ userId, roles }) {
  const [answer, setAnswer] = useState(null);
  const form = useForm({ rec_type: 'customers', permission: 'read', rec_id: '' }, async (values) => {
    setAnswer(null);
    setAnswer(await explain(userId, roles, { ...values, rec_id: values.rec_id.trim() }));
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
      <span>${answer.allowed ? t(`why.source_${answer.source}`, { name: answer.name ?? nameOf(answer.source_id), id: answer.source_id }) : t('why.no_source')}</span></p>
      ${!answer.exact && !answer.allowed && html`<p class="fine">${t('why.owner_hint')}</p>`}`}</div>
  <//>`;
}

