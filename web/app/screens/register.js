import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { go } from '../router.js';
import { useCountdown } from '../ui/countdown.js';
import { Door, useApiKey } from '../ui/door.js';
import { useAction } from '../ui/feedback.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';

const INPUT = { email: { type: 'email', autocomplete: 'email' }, phone: { type: 'tel', autocomplete: 'tel' }, username: { autocomplete: 'username' } };
const RESEND_SECONDS = 30; // The server sends three codes in ten minutes to one target.

function Apply({ done }) {
  const [key, keepKey] = useApiKey();
  const form = useForm({ api_key: key, credential_type: 'email', credential_value: '', password: '', terms_accepted: false, privacy_policy_accepted: false }, async ({ api_key: given, ...body }) => {
    body.credential_value = body.credential_value.trim();
    const answer = await api.post('/v1/users/initiate-registration', { ...body, terms_accepted: Boolean(body.terms_accepted), privacy_policy_accepted: Boolean(body.privacy_policy_accepted) },
      { open: true, headers: { 'X-API-Key': given } });
    keepKey(given);
    done({ ...answer, password: body.password });
  });
  const type = form.values.credential_type;
  return html`<${Door} title=${t('register.title')} text=${t('register.text')}>
    <${Form} form=${form}>
      ${!key && html`<${Field} form=${form} name="api_key" label=${t('register.key')} hint=${t('register.key_hint')} autocomplete="off" spellcheck="false" />`}
      <${Field} form=${form} name="credential_type" label=${t('register.type')} options=${['email', 'phone', 'username'].map((one) => [one, t(`credential.${one}`)])} />
      <${Field} form=${form} name="credential_value" label=${t(`credential.${type}`)} hint=${type === 'phone' ? '+41 79 123 45 67' : undefined} autocapitalize="none" ...${INPUT[type]} />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="new-password" hint=${t('password.rule')} />
      <${Field} form=${form} name="terms_accepted" type="checkbox" label=${t('register.terms')} />
      <${Field} form=${form} name="privacy_policy_accepted" type="checkbox" label=${t('register.privacy')} />
      <button type="submit" disabled=${form.busy}>${t('register.do')}</button>
    <//>
    <nav class="door-links" aria-label=${t('signin.other')}><a href="/signin">${t('register.have')}</a></nav>
  <//>`;
}

function Prove({ given }) {
  const [pause, setPause] = useCountdown();
  const path = `/v1/users/${given.user_id}/credentials/${given.credential.id}`;
  const options = { token: given.access_token };
  const form = useForm({ otp: '' }, async ({ otp }) => {
    await api.put(`${path}/validate`, { otp: otp.replaceAll(/\s/g, '') }, options);
    await signIn(given.credential.value, given.password);
    go('/');
  });
  const resend = useAction(async () => {
    await api.post(`${path}/otp`, {}, options);
    setPause(RESEND_SECONDS);
  }, form.setProblem);
  return html`<${Door} title=${t('otp.title')} text=${t('otp.text', { to: given.credential.value })}>
    <${Form} form=${form}>
      <${Field} class="otp" form=${form} name="otp" label=${t('otp.code')} inputmode="numeric" autocomplete="one-time-code" maxlength="7" autofocus />
      <button type="submit" disabled=${form.busy}>${t('otp.do')}</button>
    <//>
    <button class="quiet" disabled=${pause > 0 || resend.busy} onClick=${resend.run}>${pause > 0 ? t('otp.again_in', { n: pause }) : t('otp.again')}</button>
  <//>`;
}

/** Opening an account: who one is, then the code that proves it. */
export default function Register() {
  const [given, setGiven] = useState(null);
  if (!given) return html`<${Apply} done=${setGiven} />`;
  if (given.credential.validated) {
    return html`<${Door} title=${t('register.waiting')} text=${t('register.waiting_text')}><a class="button" href="/signin">${t('signin.do')}</a><//>`;
  }
  return html`<${Prove} given=${given} />`;
}

