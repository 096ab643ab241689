import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { beginPasskeySignIn, completeSignIn, leave, signIn, signInMethods } from '../auth.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { getPasskey, supportsPasskeys } from '../passkeys.js';
import { nameOf } from '../people.js';
import { expired, proofRequest, session } from '../session.js';
import { useStore } from '../store.js';
import { Dialog } from './dialog.js';
import { Loaded } from './feedback.js';
import { Form, PasswordField, useForm } from './form.js';
import { Proof } from './proof.js';

/** The password of the user whose session has expired, or their passkey. */
function FirstProof({ user, next }) {
  const methods = useLoad(signInMethods);
  const form = useForm({ password: '' }, async ({ password }) => next(await signIn(user.login ?? user.user_id, password)));
  const passkey = useForm({}, async () => {
    const step = await beginPasskeySignIn();
    await completeSignIn(step, { passkey: await getPasskey(step.options) }, user.user_id);
  });
  return html`
    <${Form} form=${form}>
      <p>
        <span class="fine">${user.login ? t('signin.login') : t('field.name')}</span><br />
        <strong>${user.login ?? nameOf(user.user_id)}</strong>
      </p>
      <${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />
      <div class="actions">
        <button type="button" class="quiet" onClick=${leave}>${t('session_expired.other_user')}</button>
        <button type="submit" disabled=${form.busy}>${t('signin.do')}</button>
      </div>
    <//>
    ${methods.data?.passkey && supportsPasskeys() && html`<${Form} form=${passkey}>
      <button type="submit" class="quiet" disabled=${passkey.busy}>${t('signin.passkey')}</button>
    <//>`}`;
}

function SignInAgain({ user: present }) {
  const [user] = useState(present);
  const [step, setStep] = useState(null);
  const submit = (proof) => completeSignIn(step, proof);
  return html`<${Dialog} title=${t('session_expired.title')}>
    <p>${step ? t('second_step.text') : t('session_expired.text')}</p>
    ${step
      ? html`<${Proof} methods=${step.methods} options=${step.passkey?.options} submit=${submit} label=${t('signin.do')}
          cancel=${() => setStep(null)} />`
      : html`<${FirstProof} user=${user} next=${setStep} />`}
  <//>`;
}

/** Returns the methods that a level of assurance accepts. A user without a second factor has only their password. */
function methodsFor(level, methods) {
  const strong = methods.filter((one) => one !== 'password');
  return level === 'aal2' && strong.length > 0 ? strong : methods;
}

/** A link to the provider, for users who have nothing else: they return to this screen with the proof. */
const ProviderProof = () => html`<p>${t('reauthenticate.provider_text')}</p>
  <a class="button" href=${`/authenticate/oidc?again=true&return_to=${encodeURIComponent(location.pathname)}`}>
    ${t('reauthenticate.provider')}
  </a>`;

const PROOF_FIELDS = ['password', 'code', 'recovery_code', 'passkey', 'token'];
/** Whether an error is about the proof, not about the change. */
const isWrongProof = (error) => PROOF_FIELDS.some((field) => error.fields?.[field]) || error.code === 'auth_m.method_on_trial';

function ConfirmIdentity({ level, methods: accepted, send, answer }) {
  const path = `/v1/users/${session.get().user_id}/reauthenticate`;
  const load = useLoad(() => api.post(`${path}/options`));
  const cancel = () => answer(false);
  async function submit(proof) {
    const given = proof.passkey ? { ...proof, token: load.data.token } : proof;
    try {
      answer(send ? await send(given) : (await api.post(path, given), given));
    } catch (error) {
      if (send && !isWrongProof(error)) return answer(error);
      if (proof.passkey) load.reload(); // A challenge can be answered once.
      throw error;
    }
    return undefined;
  }
  const usable = (methods) => (accepted ? accepted.filter((one) => one !== 'oidc') : methodsFor(level, methods));
  return html`<${Dialog} title=${t('reauthenticate.title')} close=${cancel}>
    <p>${t(accepted ? 'reauthenticate.method_text' : 'reauthenticate.text')}</p>
    <${Loaded} load=${load} lines=${3}>${({ methods, options }) => usable(methods).length > 0 && html`<${Proof} methods=${usable(methods)}
      options=${options} submit=${submit} label=${t('reauthenticate.do')} cancel=${cancel} />`}<//>
    ${accepted?.includes('oidc') && html`<${ProviderProof} />`}
  <//>`;
}

/** Asks for a proof of identity before a sensitive change; the form stays, and the request continues afterwards. */
export function ProofDialog() {
  const request = useStore(proofRequest);
  const user = useStore(session);
  return request && user ? html`<${ConfirmIdentity} key=${request.level} ...${request} />` : null;
}

/** Asks the user to sign in again when the session has expired; the screen stays, so that no input is lost. */
export function SessionExpiredDialog() {
  const isExpired = useStore(expired);
  const user = useStore(session); // null after the session has ended in another tab
  return isExpired && user ? html`<${SignInAgain} user=${user} />` : null;
}
