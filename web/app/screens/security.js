import { html } from '../lib.js';
import { api } from '../api.js';
import { caller, useCaller } from '../access.js';
import { t } from '../i18n.js';
import { myId } from '../people.js';
import { toast } from '../ui/feedback.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';
import { Card } from '../ui/page.js';
import { Credentials } from './credentials.js';
import { Factors } from './factors.js';
import { Identities } from './identities.js';
import { ProfileHead } from './profile_head.js';
import { Sessions } from './sessions.js';

function Password() {
  const form = useForm({ old_password: '', password: '', remove_new: false }, async (body) => {
    await api.put(`/v1/users/${myId()}/password`, body);
    caller.set((was) => ({ ...was, me: { ...was.me, password_printed: false } }));
    form.set('old_password', '');
    form.set('password', '');
    toast(t('password.changed'));
  });
  return html`<${Card} title=${t('password.change')}>
    <${Form} form=${form}>
      <${PasswordField} form=${form} name="old_password" label=${t('password.current')} autocomplete="current-password" />
      <${PasswordField} form=${form} name="password" label=${t('password.new')} autocomplete="new-password" hint=${t('password.rule')} />
      <${Field} form=${form} name="remove_new" type="checkbox" label=${t('password.remove_new')} />
      <p class="fine">${t('password.others')}</p>
      <div class="actions"><button type="submit" disabled=${form.busy}>${t('password.change')}</button></div>
    <//>
  <//>`;
}

/** How the caller signs in: second factors, credentials, password and sessions. */
export default function Security() {
  const { me } = useCaller();
  return html`
    <${ProfileHead} current="/profile/security" />
    <div class="grid-2">
      <div class="stack"><${Factors} userId=${me.id} /><${Credentials} userId=${me.id} /><${Identities} userId=${me.id} /></div>
      <div class="stack"><${Password} /><${Sessions} userId=${me.id} /></div>
    </div>`;
}
