import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { Door, useApiKey } from '../ui/door.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';

function Ask({ done }) {
  const [key, keepKey] = useApiKey();
  const form = useForm({ api_key: key, credential_value: '' }, async ({ api_key: given, credential_value: typed }) => {
    const value = typed.trim();
    const body = { credential_value: value };
    await api.post('/v1/users/initiate-recovery', body, { open: true, headers: { 'X-API-Key': given } });
    keepKey(given);
    done({ ...body, key: given });
  });
  return html`<${Door} title=${t('recover.title')} text=${t('recover.text')}>
    <${Form} form=${form}>
      ${!key && html`<${Field} form=${form} name="api_key" label=${t('register.key')} hint=${t('register.key_hint')} autocomplete="off" spellcheck="false" />`}
      <${Field} form=${form} name="credential_value" label=${t('recover.login')} autocomplete="username" autocapitalize="none" autofocus />
      <button type="submit" disabled=${form.busy}>${t('recover.send')}</button>
    <//>
    <nav class="door-links" aria-label=${t('signin.other')}><a href="/signin">${t('recover.back')}</a></nav>
  <//>`;
}

function Complete({ asked, restart }) {
  const form = useForm({ otp: '', password: '' }, async ({ otp, password }) => {
    const { key, ...who } = asked;
    await api.post('/v1/users/complete-recovery', { ...who, otp: otp.replaceAll(/\s/g, ''), password }, { open: true, headers: { 'X-API-Key': key } });
    await signIn(asked.credential_value, password);
    go('/');
  });
  return html`<${Door} title=${t('recover.title')} text=${t('recover.sent', { to: asked.credential_value })}>
    <${Form} form=${form}>
      <${Field} class="otp" form=${form} name="otp" label=${t('otp.code')} inputmode="numeric" autocomplete="one-time-code" maxlength="7" autofocus />
      <${PasswordField} form=${form} label=${t('password.new')} autocomplete="new-password" hint=${t('password.rule')} />
      <button type="submit" disabled=${form.busy}>${t('recover.do')}</button>
    <//>
    <button class="quiet" onClick=${restart}>${t('recover.restart')}</button>
  <//>`;
}

/** The way back for somebody who forgot his password. The answer never tells whether an account exists. */
export default function Recover() {
  const [asked, setAsked] = useState(null);
  return asked ? html`<${Complete} asked=${asked} restart=${() => setAsked(null)} />` : html`<${Ask} done=${setAsked} />`;
}
