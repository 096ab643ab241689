import { html } from '../lib.js';
import { api } from '../api.js';
import { leave, signIn } from '../auth.js';
import { t } from '../i18n.js';
import { expired, passwordRequest, session } from '../session.js';
import { useStore } from '../store.js';
import { Dialog } from './dialog.js';
import { Actions, Form, PasswordField, useForm } from './form.js';

function SignInAgain() {
  const login = session.get()?.login ?? session.get()?.user_id;
  const form = useForm({ password: '' }, ({ password }) => signIn(login, password));
  return html`<${Dialog} title=${t('session_expired.title')}>
    <p>${t('session_expired.text')}</p>
    <${Form} form=${form}>
      <p><span class="fine">${t('signin.login')}</span><br /><strong>${login}</strong></p>
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <div class="actions">
        <button type="button" class="quiet" onClick=${leave}>${t('session_expired.other_user')}</button>
        <button type="submit" disabled=${form.busy}>${t('signin.do')}</button>
      </div>
    <//>
  <//>`;
}

function ConfirmPassword({ answer }) {
  const form = useForm({ password: '' }, async ({ password }) => {
    await api.post(`/v1/users/${session.get().user_id}/reauthenticate`, { password });
    answer(true);
  });
  const cancel = () => answer(false);
  return html`<${Dialog} title=${t('reauthenticate.title')} close=${cancel}>
    <p>${t('reauthenticate.text')}</p>
    <${Form} form=${form}>
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <${Actions} form=${form} label=${t('reauthenticate.do')} cancel=${cancel} />
    <//>
  <//>`;
}

/** Asks for the password before a sensitive change; the form stays, and the request continues afterwards. */
export function PasswordDialog() {
  const request = useStore(passwordRequest);
  return request ? html`<${ConfirmPassword} answer=${request.answer} />` : null;
}

/** Asks the user to sign in again when the session has expired; the screen stays, so that no input is lost. */
export function SessionExpiredDialog() {
  const isExpired = useStore(expired);
  return isExpired ? html`<${SignInAgain} />` : null;
}
