import { html, useEffect, useState } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { AuthLayout } from '../ui/auth_layout.js';
import { Form, useForm } from '../ui/form.js';

const Result = ({ title, text }) => html`<${AuthLayout} title=${title} text=${text}>
  <a class="button" href="/recover">${t('undo.password')}</a>
  <nav class="auth-links" aria-label=${t('signin.other')}><a href="/signin">${t('recover.back')}</a></nav>
<//>`;

/**
 * Removes a new way to sign in with the link of the message about it. Opening the link changes nothing: programs that scan mails open
 * it, too. The token is in the fragment, which no server sees.
 */
export default function Undo() {
  const [token] = useState(() => location.hash.slice(1));
  const [state, setState] = useState(token ? 'asking' : 'invalid');
  useEffect(() => history.replaceState(history.state, '', location.pathname), []); // The token does not stay in the address.
  const form = useForm({}, async () => {
    try {
      await api.post('/authenticate/undo', { token }, { anonymous: true });
      setState('done');
    } catch (error) {
      if (error.status !== 404) throw error;
      setState('invalid');
    }
  });
  if (state !== 'asking') return html`<${Result} title=${t(`undo.${state}`)} text=${t(`undo.${state}_text`)} />`;
  return html`<${AuthLayout} title=${t('undo.title')} text=${t('undo.text')}>
    <${Form} form=${form}><button type="submit" class="danger" disabled=${form.busy}>${t('undo.do')}</button><//>
  <//>`;
}
