import { html } from '../lib.js';
import { api } from '../api.js';
import { leave, signIn } from '../auth.js';
import { t } from '../i18n.js';
import { challenge, expired, session } from '../session.js';
import { useStore } from '../store.js';
import { Dialog } from './dialog.js';
import { Actions, Form, PasswordField, useForm } from './form.js';

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

function Prove({ answer }) {
  const form = useForm({ password: '' }, async ({ password }) => {
    await api.post(`/v1/users/${session.get().user_id}/reauthenticate`, { password });
    answer(true);
  });
  const cancel = () => answer(false);
  return html`<${Dialog} title=${t('prove.title')} close=${cancel}>
    <p>${t('prove.text')}</p>
    <${Form} form=${form}>
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <${Actions} form=${form} label=${t('prove.do')} cancel=${cancel} />
    <//>
  <//>`;
}

/** Asks for the password before what could give the account away; what was typed stays, and the request goes on after it. */
export function ProveAgain() {
  const asked = useStore(challenge);
  return asked ? html`<${Prove} answer=${asked.answer} />` : null;
}

/** Asks for the password again over whatever is on the screen, so that nothing typed is lost when a session ends. */
export function SignInAgain() {
  const ended = useStore(expired);
  return ended ? html`<${Ask} />` : null;
}

