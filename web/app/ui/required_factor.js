import { html, useEffect } from '../lib.js';
import { api } from '../api.js';
import { leave } from '../auth.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { factorRequest, session } from '../session.js';
import { useStore } from '../store.js';
import { AddFactor } from '../screens/factor_dialogs.js';
import { Dialog } from './dialog.js';

function SetUpFactor({ answer }) {
  const userId = session.get().user_id;
  const load = useLoad(async () => (await api.get(`/v1/users/${userId}/factors`, { limit: 100 })).data);
  const hasFactor = load.data?.some((one) => one.status === 'active' && one.type !== 'recovery_codes');
  useEffect(() => {
    if (hasFactor) answer(true); // The user added it in another tab.
  }, [hasFactor]);
  useEffect(() => {
    window.addEventListener('focus', load.reload);
    return () => window.removeEventListener('focus', load.reload);
  }, []);
  return html`<${Dialog} title=${t('required_factor.title')}>
    <p>${t('required_factor.text')}</p>
    <${AddFactor} userId=${userId} done=${() => answer(true)} />
    <p class="fine">${t('required_factor.help')}</p>
    <div class="actions"><button type="button" class="quiet" onClick=${leave}>${t('nav.signout')}</button></div>
  <//>`;
}

/** Lets a user who must have a second factor set one up; the screen stays, and its requests continue afterwards. */
export function RequiredFactorDialog() {
  const request = useStore(factorRequest);
  return request ? html`<${SetUpFactor} answer=${request.answer} />` : null;
}
