import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { PRIVACY, TERMS } from '../bank.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { useCountdown } from '../ui/countdown.js';
import { Notice, useAction } from '../ui/feedback.js';
import { CodeField, codeDigits, Field, Form, PasswordField, useForm } from '../ui/form.js';
import { CredentialType } from './credentials.js';
import { DisplayNameField, withNameError } from './display_name.js';
import { KeyField, useRegistrationKey } from './registration_key.js';
import { confirmedByLink, remembered } from './resume.js';

const INPUT = {
  email: { type: 'email', autocomplete: 'email' },
  phone: { type: 'tel', autocomplete: 'tel', hint: '+41 79 123 45 67' },
  username: { autocomplete: 'username' },
};
const INITIAL = {
  credential_type: 'email', credential_value: '', display_name: '', password: '', terms_accepted: false, privacy_policy_accepted: false,
};
const ANONYMOUS = { anonymous: true };
const waiting = remembered('registration'); // the value whose code is awaited
const RESEND_SECONDS = 30; // The server sends three codes to one address in ten minutes.

/** Returns the request for the values of the form; an empty display name is left out. */
function requestBody({ display_name: typed, ...values }) {
  const name = typed.trim();
  return {
    ...values, ...(name && { display_name: name }), credential_value: values.credential_value.trim(),
    terms_accepted: Boolean(values.terms_accepted), privacy_policy_accepted: Boolean(values.privacy_policy_accepted),
  };
}

/** A link to a text that the user accepts, if the bank has set its address. */
const link = (url, key) => url && html`<a href=${url} target="_blank" rel="noopener">${t(key)}</a>`;

function Apply({ done }) {
  const [key, keepKey] = useRegistrationKey();
  const form = useForm({ api_key: key, ...INITIAL }, async ({ api_key: given, ...values }) => {
    const options = { anonymous: true, headers: { 'X-API-Key': given } };
    const answer = await withNameError(api.post('/v1/users/initiate-registration', requestBody(values), options));
    keepKey(given);
    done({ ...answer, password: values.password });
  });
  const type = form.values.credential_type;
  return html`<${AuthLayout} title=${t('register.title')} text=${t('register.text')}>
    <${Form} form=${form}>
      ${!key && html`<${KeyField} form=${form} />`}
      <${CredentialType} form=${form} />
      <${Field} form=${form} name="credential_value" label=${t(`credential.${type}`)} autocapitalize="none" ...${INPUT[type]} />
      <${DisplayNameField} form=${form} />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="new-password" hint=${t('password.rule')} />
      <${Field} form=${form} name="terms_accepted" type="checkbox" label=${t('register.terms')}
        hint=${link(TERMS, 'register.read_terms')} />
      <${Field} form=${form} name="privacy_policy_accepted" type="checkbox" label=${t('register.privacy')}
        hint=${link(PRIVACY, 'register.read_privacy')} />
      <button type="submit" disabled=${form.busy}>${t('register.do')}</button>
    <//>
    <nav class="auth-links" aria-label=${t('signin.other')}><a href="/signin">${t('register.have')}</a></nav>
  <//>`;
}

/** The step of the code. The password is known unless the page was loaded again, or opened by the link in the message. */
function ConfirmCode({ value, password: known, restart }) {
  const [pause, setPause] = useCountdown();
  const [said, setSaid] = useState('');
  const form = useForm({ otp: '', password: '' }, async ({ otp, password: typed }) => {
    const password = known || typed;
    await api.post('/v1/users/complete-registration', { credential_value: value, otp: codeDigits(otp), password }, ANONYMOUS);
    waiting.clear();
    await signIn(value, password);
    go('/');
  });
  const resend = useAction(async () => {
    const { message } = await api.post('/v1/users/resend-registration-code', { credential_value: value }, ANONYMOUS);
    setSaid(message);
    setPause(RESEND_SECONDS);
  }, form.setProblem);
  return html`<${AuthLayout} title=${t('otp.title')} text=${known ? t('otp.text', { to: value }) : t('register.resumed', { to: value })}>
    ${said && html`<${Notice}>${said}<//>`}
    <${Form} form=${form}>
      <${CodeField} class="otp" form=${form} autofocus />
      ${!known && html`<${PasswordField} form=${form} label=${t('register.chosen_password')} autocomplete="current-password" />`}
      <button type="submit" disabled=${form.busy}>${t('otp.do')}</button>
    <//>
    <button class="quiet" disabled=${pause > 0 || resend.busy} onClick=${resend.run}>
      ${pause > 0 ? t('otp.again_in', { n: pause }) : t('otp.again')}
    </button>
    <button class="bare" onClick=${restart}>${t('register.restart')}</button>
  <//>`;
}

/** Registration: the account's data, then the code that confirms the credential. The second step survives a reload. */
export default function Register() {
  const [account, setAccount] = useState(() => {
    const value = confirmedByLink() || waiting.get();
    if (value) waiting.set(value);
    return value ? { value } : null;
  });
  const registered = ({ credential, password }) => {
    if (!credential.validated) waiting.set(credential.value);
    setAccount({ value: credential.value, password, active: credential.validated });
  };
  const restart = () => {
    waiting.clear();
    setAccount(null);
  };
  if (!account) return html`<${Apply} done=${registered} />`;
  if (!account.active) return html`<${ConfirmCode} value=${account.value} password=${account.password} restart=${restart} />`;
  return html`<${AuthLayout} title=${t('register.waiting')} text=${t('register.waiting_text')}>
    <a class="button" href="/signin">${t('signin.do')}</a>
  <//>`;
}
