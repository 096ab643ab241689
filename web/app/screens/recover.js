import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { CodeField, codeDigits, Field, Form, PasswordField, useForm } from '../ui/form.js';
import { SecondStep } from '../ui/second_step.js';
import { KeyField, useRegistrationKey } from './registration_key.js';

function RequestCode({ done }) {
  const [key, keepKey] = useRegistrationKey();
  const form = useForm({ api_key: key, credential_value: '' }, async ({ api_key: given, credential_value: typed }) => {
    const body = { credential_value: typed.trim() };
    await api.post('/v1/users/initiate-recovery', body, { anonymous: true, headers: { 'X-API-Key': given } });
    keepKey(given);
    done({ ...body, key: given });
  });
  return html`<${AuthLayout} title=${t('recover.title')} text=${t('recover.text')}>
    <${Form} form=${form}>
      ${!key && html`<${KeyField} form=${form} />`}
      <${Field} form=${form} name="credential_value" label=${t('recover.login')} autocomplete="username" autocapitalize="none" autofocus />
      <button type="submit" disabled=${form.busy}>${t('recover.send')}</button>
    <//>
    <nav class="auth-links" aria-label=${t('signin.other')}><a href="/signin">${t('recover.back')}</a></nav>
  <//>`;
}

function Complete({ request, restart }) {
  const { key, credential_value: login } = request;
  const [step, setStep] = useState(null);
  const form = useForm({ otp: '', password: '' }, async ({ otp, password }) => {
    const body = { credential_value: login, otp: codeDigits(otp), password };
    await api.post('/v1/users/complete-recovery', body, { anonymous: true, headers: { 'X-API-Key': key } });
    const next = await signIn(login, password);
    if (next) setStep(next);
    else go('/');
  });
  if (step) return html`<${SecondStep} step=${step} restart=${restart} done=${() => go('/')} />`;
  return html`<${AuthLayout} title=${t('recover.title')} text=${t('recover.sent', { to: login })}>
    <${Form} form=${form}>
      <${CodeField} class="otp" form=${form} autofocus />
      <${PasswordField} form=${form} label=${t('password.new')} autocomplete="new-password" hint=${t('password.rule')} />
      <button type="submit" disabled=${form.busy}>${t('recover.do')}</button>
    <//>
    <button class="quiet" onClick=${restart}>${t('recover.restart')}</button>
  <//>`;
}

/** Sets a new password with a one-time code. The answers do not reveal whether an account exists. */
export default function Recover() {
  const [request, setRequest] = useState(null);
  return request
    ? html`<${Complete} request=${request} restart=${() => setRequest(null)} />`
    : html`<${RequestCode} done=${setRequest} />`;
}
