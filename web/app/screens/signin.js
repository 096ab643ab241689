import { html, useEffect, useState } from '../lib.js';
import { signIn, signInMethods } from '../auth.js';
import { t } from '../i18n.js';
import { usePasskeySignIn } from '../passkey_signin.js';
import { supportsPasskeys } from '../passkeys.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { useCountdown } from '../ui/countdown.js';
import { Notice, useAction } from '../ui/feedback.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { SecondStep } from '../ui/second_step.js';
import { FederatedSignIn, LinkNotice, useFederatedReturn } from './federated_signin.js';

const METHODS_KEY = 'kontor.signin_methods';

/** Loads the ways to sign in. Until then the screen offers those of the last visit, so that it does not move. */
function useMethods() {
  const [methods, setMethods] = useState(() => JSON.parse(localStorage.getItem(METHODS_KEY)) ?? {});
  useEffect(() => {
    const keep = (loaded) => {
      localStorage.setItem(METHODS_KEY, JSON.stringify(loaded));
      setMethods(loaded);
    };
    signInMethods().then(keep, () => {});
  }, []);
  return methods;
}

/** Sign-in by password, passkey, or the bank's provider. A lockout after wrong passwords is counted down. */
function FirstStep({ next, returned }) {
  const methods = useMethods();
  const [seconds, setSeconds] = useCountdown();
  const [message, setMessage] = useState(''); // the server's message about the lockout
  const form = useForm({ login: '', password: '' }, async (values) => {
    try {
      next(await signIn(values.login.trim(), values.password));
    } catch (error) {
      if (error.code === 'auth_m.cooling_off' && error.retryAfter) {
        setMessage(error.message);
        setSeconds(error.retryAfter);
        return;
      }
      form.set('password', '');
      const { user_id: login, ...others } = error.details ?? {};
      if (login) error.details = { ...others, login };
      throw error;
    }
  });
  useEffect(() => form.setProblem(returned.error), [returned.error]);
  const byPasskey = usePasskeySignIn(Boolean(methods.passkey), form.setProblem);
  const passkey = useAction(() => {
    form.setProblem(null);
    return byPasskey();
  }, form.setProblem);
  const isLockedOut = seconds > 0;
  return html`<${AuthLayout} title=${t('signin.title')} text=${t('signin.text')}>
    ${returned.linking && html`<${LinkNotice} />`}
    ${isLockedOut && html`<${Notice} tone="warn" title=${message}>
      <span aria-live="off">${t('signin.lockout', { n: seconds })}</span>
    <//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="login" label=${t('signin.login')} autocomplete="username webauthn" autocapitalize="none"
        spellcheck=${false} autofocus />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <button type="submit" disabled=${form.busy || isLockedOut}>${form.busy ? t('signin.doing') : t('signin.do')}</button>
    <//>
    ${(methods.oidc || (methods.passkey && supportsPasskeys())) && html`<div class="auth-more">
      ${methods.passkey && supportsPasskeys() && html`<button type="button" class="quiet" disabled=${passkey.busy} onClick=${passkey.run}>
        <${Icon} name="key" size=${16} />${t('signin.passkey')}
      </button>`}
      ${methods.oidc && html`<${FederatedSignIn} name=${methods.oidc.name} />`}
    </div>`}
    <nav class="auth-links" aria-label=${t('signin.other')}>
      <a href="/recover">${t('signin.recover')}</a><a href="/register">${t('signin.register')}</a>
    </nav>
    <details><summary>${t('signin.first')}</summary><p>${t('signin.first_text')}</p><p><code>kontor user password</code></p></details>
  <//>`;
}

/** The sign-in screen. Users with a second factor need a second step. */
export default function SignIn() {
  const [step, setStep] = useState(null);
  const returned = useFederatedReturn(setStep);
  return step
    ? html`<${SecondStep} step=${step} restart=${() => setStep(null)} />`
    : html`<${FirstStep} next=${setStep} returned=${returned} />`;
}
