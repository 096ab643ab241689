import { html } from '../lib.js';
import { leave, signIn } from '../auth.js';
import { t } from '../i18n.js';
import { expired, session } from '../session.js';
import { useStore } from '../store.js';
import { Dialog } from './dialog.js';
import { Form, PasswordField, useForm } from './form.js';

function Ask() {
  const login = session.get()?.login ?? session.get()?.user_id;
  const form = useForm({ password: '' }, ({ password }) => signIn(login, password));
  return html`<${Dialog} title=${t('again.title')}>
    <p>${t('again.text')}</p>
    <${Form} form=${form}>
      <p><span class="fine">${t('signin.login')}</span><br /><strong>${login}</strong></p>
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <div class="actions">
        <button type="button" class="quiet" onClick=${leave}>${t('again.other')}</button>
        <button type="submit" disabled=${form.busy}>${t('signin.do')}</button>
      </div>
    <//>
  <//>`;
}

/** Asks for the password again over whatever is on the screen, so that nothing typed is lost when a session ends. */
export function SignInAgain() {
  const ended = useStore(expired);
  return ended ? html`<${Ask} />` : null;
}

