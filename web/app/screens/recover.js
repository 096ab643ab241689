import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { CodeField, codeDigits, Field, Form, PasswordField, useForm } from '../ui/form.js';
import { SecondStep } from '../ui/second_step.js';
import { remembered } from './resume.js';

const ANONYMOUS = { anonymous: true };
const waiting = remembered('recovery'); // the value whose code is awaited

function RequestCode({ done }) {
  const form = useForm({ credential_value: '' }, async ({ credential_value: typed }) => {
    const login = typed.trim();
    await api.post('/v1/users/initiate-recovery', { credential_value: login }, ANONYMOUS);
    waiting.set(login);
    done(login);
  });
  return html`<${AuthLayout} title=${t('recover.title')} text=${t('recover.text')}>
    <${Form} form=${form}>
      <${Field} form=${form} name="credential_value" label=${t('recover.login')} autocomplete="username" autocapitalize="none" autofocus />
      <button type="submit" disabled=${form.busy}>${t('recover.send')}</button>
    <//>
    <nav class="auth-links" aria-label=${t('signin.other')}><a href="/signin">${t('recover.back')}</a></nav>
  <//>`;
}

function Complete({ login, restart }) {
  const [step, setStep] = useState(null);
  const form = useForm({ otp: '', password: '', remove_new: true }, async ({ otp, password, remove_new }) => {
    const body = { credential_value: login, otp: codeDigits(otp), password, remove_new };
    await api.post('/v1/users/complete-recovery', body, ANONYMOUS);
    waiting.clear();
    const next = await signIn(login, password);
    if (next) setStep(next);
    else go('/');
  });
  if (step) return html`<${SecondStep} step=${step} restart=${restart} done=${() => go('/')} />`;
  return html`<${AuthLayout} title=${t('recover.title')} text=${t('recover.sent', { to: login })}>
    <${Form} form=${form}>
      <${CodeField} class="otp" form=${form} autofocus />
      <${PasswordField} form=${form} label=${t('password.new')} autocomplete="new-password" hint=${t('password.rule')} />
      <${Field} form=${form} name="remove_new" type="checkbox" label=${t('password.remove_new')} />
      <button type="submit" disabled=${form.busy}>${t('recover.do')}</button>
    <//>
    <button class="quiet" onClick=${restart}>${t('recover.restart')}</button>
  <//>`;
}

/** Sets a new password with a one-time code. The answers do not reveal whether an account exists. The code step survives a reload. */
export default function Recover() {
  const [login, setLogin] = useState(waiting.get);
  const restart = () => {
    waiting.clear();
    setLogin('');
  };
  return login
    ? html`<${Complete} login=${login} restart=${restart} />`
    : html`<${RequestCode} done=${setLogin} />`;
}
