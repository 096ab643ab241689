import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge, OnTrial } from '../ui/display.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError, useAction } from '../ui/feedback.js';
import { Actions, CodeField, codeDigits, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

/** The types of credentials. */
export const CREDENTIAL_TYPES = ['email', 'phone', 'username'];

/** The choice of a credential's type. */
export const CredentialType = ({ form }) => html`<${Field} form=${form} name="credential_type" label=${t('register.type')}
  options=${CREDENTIAL_TYPES.map((type) => [type, t(`credential.${type}`)])} />`;

function AddDialog({ userId, close, done }) {
  const form = useForm({ credential_type: 'email', credential_value: '' },
    async (body) => done(await api.post(`/v1/users/${userId}/credentials`, body)));
  return html`<${Dialog} title=${t('credentials.add')} close=${close}><${Form} form=${form}>
    <${CredentialType} form=${form} />
    <${Field} form=${form} name="credential_value" label=${t(`credential.${form.values.credential_type}`)} autocapitalize="none"
      autocomplete="off" />
    <${Actions} form=${form} label=${t('credentials.add')} cancel=${close} />
  <//><//>`;
}

function ValidateDialog({ userId, credential, close, done }) {
  const path = `/v1/users/${userId}/credentials/${credential.id}`;
  const form = useForm({ otp: '' }, async ({ otp }) => done(await api.put(`${path}/validate`, { otp: codeDigits(otp) })));
  const resend = useAction(async () => {
    await api.post(`${path}/otp`);
    toast(t('otp.sent'));
  });
  return html`<${Dialog} title=${t('otp.title')} close=${close}><${Form} form=${form}>
    <p>${t('otp.text', { to: credential.value })}</p>
    <${CodeField} form=${form} />
    <button type="button" class="link" disabled=${resend.busy} onClick=${resend.run}>${t('otp.again')}</button>
    <${Actions} form=${form} label=${t('otp.do')} cancel=${close} />
  <//><//>`;
}

function Credential({ credential, validate, remove }) {
  return html`<li>
    <div class="grow two-lines"><span>${credential.value}</span><span>${term('credential', credential.type)}</span></div>
    <${OnTrial} of=${credential} />
    ${credential.validated
      ? html`<${Badge} value=${t('credentials.validated')} tone="good" />`
      : html`<button class="quiet small" onClick=${validate}>${t('otp.do')}</button>`}
    <button class="bare" aria-label=${t('credentials.remove_what', { value: credential.value })} onClick=${remove}>
      <${Icon} name="trash" size=${16} />
    </button>
  </li>`;
}

/** A user's credentials. */
export function Credentials({ userId }) {
  const [dialog, setDialog] = useState(null); // 'add', or the credential to validate
  const load = useLoad(async () => (await api.get(`/v1/users/${userId}/credentials`, { limit: 100 })).data, [userId]);
  const close = () => setDialog(null);
  const done = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  async function remove(one) {
    const title = t('credentials.remove');
    if (!(await confirm({ title, text: t('credentials.remove_text', { value: one.value }), action: title }))) return;
    api.delete(`/v1/users/credentials/${one.id}`).then(done, toastError);
  }
  function added(made) {
    done();
    if (!made.validated) setDialog(made);
  }
  const add = html`<button class="quiet small" onClick=${() => setDialog('add')}>
    <${Icon} name="plus" size=${14} />${t('credentials.add')}
  </button>`;
  return html`<${Card} title=${t('credentials.title')} aside=${add}>
    <${Loaded} load=${load} lines=${2}>${(rows) => (rows.length
      ? html`<ul class="items">${rows.map((one) => html`
          <${Credential} key=${one.id} credential=${one} validate=${() => setDialog(one)} remove=${() => remove(one)} />`)}</ul>`
      : html`<${Empty} icon="key" title=${t('credentials.none')}>${t('credentials.none_text')}<//>`)}<//>
    ${dialog === 'add' && html`<${AddDialog} userId=${userId} close=${close} done=${added} />`}
    ${dialog?.id && html`<${ValidateDialog} userId=${userId} credential=${dialog} close=${close} done=${done} />`}
  <//>`;
}
