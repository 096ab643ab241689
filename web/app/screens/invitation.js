import { html, useEffect, useState } from '../lib.js';
import { api } from '../api.js';
import { signIn } from '../auth.js';
import { dateTime } from '../format.js';
import { language, switchLanguage, t } from '../i18n.js';
import { useLoad } from '../load.js';
import { go } from '../router.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { Field, Form, PasswordField, useForm } from '../ui/form.js';
import { Loaded } from '../ui/feedback.js';

const ANONYMOUS = { anonymous: true };

function Accept({ token, invited }) {
  const form = useForm({ email: invited.email, password: '' }, async ({ password }) => {
    const { email } = await api.post('/v1/invitations/accept', { token, password }, ANONYMOUS);
    try {
      await signIn(email, password); // A role that needs a second factor asks for it next.
      go('/');
    } catch {
      go('/signin');
    }
  });
  const { display_name: name } = invited;
  return html`<${AuthLayout} title=${name ? t('invitation.title_name', { name }) : t('invitation.title')}
    text=${t('invitation.text', { until: dateTime(invited.expires_at) })}>
    <${Form} form=${form}>
      <${Field} form=${form} name="email" label=${t('credential.email')} readonly autocomplete="username" spellcheck=${false} />
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="new-password" hint=${t('password.rule')} />
      <button type="submit" disabled=${form.busy}>${t('invitation.do')}</button>
    <//>
  <//>`;
}

const Invalid = () => html`<${AuthLayout} title=${t('invitation.invalid')} text=${t('invitation.invalid_text')}>
  <a class="button" href="/signin">${t('signin.do')}</a>
<//>`;

/** An invitation: the person of the link chooses a password. The token is in the fragment, which no server sees. */
export default function Invitation() {
  const [token] = useState(() => location.hash.slice(1));
  useEffect(() => history.replaceState(history.state, '', location.pathname), []); // The token does not stay in the address.
  const load = useLoad(() => api.post('/v1/invitations/view', { token }, ANONYMOUS), [token]);
  const wanted = load.data?.language;
  useEffect(() => {
    if (wanted && wanted !== language.get()) switchLanguage(wanted);
  }, [wanted]);
  if (!token || load.error?.status === 404) return html`<${Invalid} />`;
  if (load.data) return html`<${Accept} token=${token} invited=${load.data} />`;
  return html`<${AuthLayout} title=${t('invitation.title')}><${Loaded} load=${load} lines=${3}>${() => null}<//><//>`;
}
