import { html, useState } from '../lib.js';
import { signIn } from '../auth.js';
import { t } from '../i18n.js';
import { useCountdown } from '../ui/countdown.js';
import { Door } from '../ui/door.js';
import { Notice } from '../ui/feedback.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';

/** The door of the house: sign in, with the pause after wrong passwords counted down. */
export default function SignIn() {
  const [pause, setPause] = useCountdown();
  const [login, setLogin] = useState('');
  const form = useForm({ login: '', password: '' }, async (values) => {
    try {
      await signIn(values.login.trim(), values.password);
    } catch (error) {
      if (error.code === 'auth_m.cooling_off' && error.retryAfter) {
        setLogin(error.message);
        setPause(error.retryAfter);
        return;
      }
      form.set('password', '');
      throw error;
    }
  });
  return html`<${Door} title=${t('signin.title')} text=${t('signin.text')}>
    ${pause > 0 && html`<${Notice} tone="warn" title=${login}><span aria-live="off">${t('signin.cooling', { n: pause })}</span><//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="login" label=${t('signin.login')} autocomplete="username" autocapitalize="none" spellcheck="false" autofocus />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <button type="submit" disabled=${form.busy || pause > 0}>${form.busy ? t('signin.doing') : t('signin.do')}</button>
    <//>
    <nav class="door-links" aria-label=${t('signin.other')}><a href="/recover">${t('signin.recover')}</a><a href="/register">${t('signin.register')}</a></nav>
    <details><summary>${t('signin.first')}</summary><p>${t('signin.first_text')}</p><p><code>kontor user password</code></p></details>
  <//>`;
}
