import { html } from '../lib.js';
import { completeSignIn } from '../auth.js';
import { t } from '../i18n.js';
import { AuthLayout } from './auth_layout.js';
import { Proof } from './proof.js';

/**
 * The second step of a sign-in, for users with a second factor.
 * @param {{step: {token: string, methods: string[], passkey?: {options: object}}, restart: () => void, done?: () => void}} props
 *   step: what signIn returned; done: called after the sign-in
 */
export function SecondStep({ step, restart, done }) {
  const submit = async (proof) => {
    await completeSignIn(step, proof);
    done?.();
  };
  return html`<${AuthLayout} title=${t('second_step.title')} text=${t('second_step.text')}>
    <${Proof} methods=${step.methods} options=${step.passkey?.options} submit=${submit} label=${t('signin.do')} />
    <button class="quiet" onClick=${restart}>${t('recover.restart')}</button>
  <//>`;
}
