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
 * Removes a new way to sign in, or restores a deleted one, with the link of the message about it. Opening the link changes nothing:
 * programs that scan mails open it, too. The token is in the fragment, which no server sees.
 */
export default function Undo() {
  const [token] = useState(() => location.hash.slice(1));
  const [restores] = useState(() => location.search === '?restore');
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
  if (state !== 'asking') {
    const title = state === 'done' && restores ? t('undo.restored') : t(`undo.${state}`);
    return html`<${Result} title=${title} text=${t(`undo.${state}_text`)} />`;
  }
  const ask = restores ? 'undo.restore_' : 'undo.';
  return html`<${AuthLayout} title=${t(`${ask}title`)} text=${t(`${ask}text`)}>
    <${Form} form=${form}><button type="submit" class=${restores ? '' : 'danger'} disabled=${form.busy}>${t(`${ask}do`)}</button><//>
  <//>`;
}
