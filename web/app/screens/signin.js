import { html, useState } from '../lib.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { useCountdown } from '../ui/countdown.js';
import { Notice } from '../ui/feedback.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';

/** The sign-in screen. A lockout after wrong passwords is counted down. */
export default function SignIn() {
  const [seconds, setSeconds] = useCountdown();
  const [message, setMessage] = useState(''); // the server's message about the lockout
  const form = useForm({ login: '', password: '' }, async (values) => {
    try {
      await signIn(values.login.trim(), values.password);
    } catch (error) {
      if (error.code === 'auth_m.cooling_off' && error.retryAfter) {
        setMessage(error.message);
        setSeconds(error.retryAfter);
        return;
      }
      form.set('password', '');
      throw error;
    }
  });
  const isLockedOut = seconds > 0;
  return html`<${AuthLayout} title=${t('signin.title')} text=${t('signin.text')}>
    ${isLockedOut && html`<${Notice} tone="warn" title=${message}>
      <span aria-live="off">${t('signin.lockout', { n: seconds })}</span>
    <//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="login" label=${t('signin.login')} autocomplete="username" autocapitalize="none" spellcheck="false"
        autofocus />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <button type="submit" disabled=${form.busy || isLockedOut}>${form.busy ? t('signin.doing') : t('signin.do')}</button>
    <//>
    <nav class="auth-links" aria-label=${t('signin.other')}>
      <a href="/recover">${t('signin.recover')}</a><a href="/register">${t('signin.register')}</a>
    </nav>
    <details><summary>${t('signin.first')}</summary><p>${t('signin.first_text')}</p><p><code>kontor user password</code></p></details>
  <//>`;
}
