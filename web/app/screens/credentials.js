import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge } from '../ui/data.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError, useAction } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

function Add({ userId, close, done }) {
  const form = useForm({ credential_type: 'email', credential_value: '' }, async (body) => done(await api.post(`/v1/users/${userId}/credentials`, body)));
  return html`<${Dialog} title=${t('credentials.add')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="credential_type" label=${t('register.type')} options=${['email', 'phone', 'username'].map((one) => [one, t(`credential.${one}`)])} />
    <${Field} form=${form} name="credential_value" label=${t(`credential.${form.values.credential_type}`)} autocapitalize="none" autocomplete="off" />
    <${Actions} form=${form} label=${t('credentials.add')} cancel=${close} />
  <//><//>`;
}

function Prove({ userId, credential, close, done }) {
  const path = `/v1/users/${userId}/credentials/${credential.id}`;
  const form = useForm({ otp: '' }, async ({ otp }) => done(await api.put(`${path}/validate`, { otp: otp.replaceAll(/\s/g, '') })));
  const resend = useAction(async () => {
    await api.post(`${path}/otp`);
    toast(t('otp.sent'));
  });
  return html`<${Dialog} title=${t('otp.title')} close=${close}><${Form} form=${form}>
    <p>${t('otp.text', { to: credential.value })}</p>
    <${Field} form=${form} name="otp" label=${t('otp.code')} inputmode="numeric" autocomplete="one-time-code" maxlength="7" />
    <button type="button" class="link" disabled=${resend.busy} onClick=${resend.run}>${t('otp.again')}</button>
    <${Actions} form=${form} label=${t('otp.do')} cancel=${close} />
  <//><//>`;
}

/** What a user signs in with. */
export function Credentials({ userId }) {
  const [dialog, setDialog] = useState(null);
  const load = useLoad(async () => (await api.get(`/v1/users/${userId}/credentials`, { limit: 100 })).data, [userId]);
  const done = () => {
    setDialog(null);
    load.reload();
    toast(t('saved'));
  };
  async function remove(one) {
    if (!(await confirm({ title: t('credentials.remove'), text: t('credentials.remove_text', { value: one.value }), action: t('credentials.remove') }))) return;
    api.delete(`/v1/users/credentials/${one.id}`).then(done, toastError);
  }
  async function added(made) {
    done();
    if (!made.validated) setDialog(made);
  }
  return html`<${Card} title=${t('credentials.title')} aside=${html`<button class="quiet small" onClick=${() => setDialog('add')}><${Icon} name="plus" size=${14} />${t('credentials.add')}</button>`}>
    <${Loaded} load=${load} lines=${2}>${(rows) => (rows.length
      ? html`<ul class="items">${rows.map((one) => html`<li key=${one.id}><div class="grow two-lines"><span>${one.value}</span><span>${term('credential', one.type)}</span></div>
          ${one.validated ? html`<${Badge} value=${t('credentials.validated')} tone="good" />` : html`<button class="quiet small" onClick=${() => setDialog(one)}>${t('otp.do')}</button>`}
          <button class="bare" aria-label=${t('credentials.remove_what', { value: one.value })} onClick=${() => remove(one)}><${Icon} name="trash" size=${16} /></button></li>`)}</ul>`
      : html`<${Empty} icon="key" title=${t('credentials.none')} />`)}<//>
    ${dialog === 'add' && html`<${Add} userId=${userId} close=${() => setDialog(null)} done=${added} />`}
    ${dialog?.id && html`<${Prove} userId=${userId} credential=${dialog} close=${() => setDialog(null)} done=${done} />`}
  <//>`;
}
