import { html, useEffect, useState } from '../lib.js';
import { t } from '../i18n.js';
import { getPasskey, supportsPasskeys } from '../passkeys.js';
import { Actions, CodeField, codeDigits, Field, Form, PasswordField, useForm } from './form.js';

const METHODS = ['passkey', 'totp', 'password', 'recovery_code']; // in the order they are offered
const FIELDS = { totp: 'code', password: 'password', recovery_code: 'recovery_code' };
const KEY = 'kontor.proof'; // the method that succeeded last in this browser

/** Returns the method to begin with: the one that succeeded last, else the first. */
function firstMethod(methods) {
  const last = localStorage.getItem(KEY);
  return methods.includes(last) ? last : methods[0];
}

function ProofField({ form, method }) {
  if (method === 'totp') return html`<${CodeField} class="otp" form=${form} name="code" />`;
  if (method === 'password') {
    return html`<${PasswordField} form=${form} label=${t('signin.password')} autocomplete="current-password" />`;
  }
  return html`<${Field} form=${form} name="recovery_code" label=${t('proof.recovery_code')} autocomplete="off" autocapitalize="none"
    spellcheck=${false} class="recovery" />`;
}

/** Returns the proof that the form asks for. */
async function proofOf(method, values, options) {
  if (method === 'passkey') return { passkey: await getPasskey(options) };
  if (method === 'totp') return { code: codeDigits(values.code) };
  return method === 'password' ? { password: values.password } : { recovery_code: values.recovery_code.trim() };
}

function ProofForm({ method, options, submit, label, cancel }) {
  const field = FIELDS[method];
  const form = useForm(field ? { [field]: '' } : {}, async (values) => {
    try {
      await submit(await proofOf(method, values, options));
      if (method !== 'recovery_code') localStorage.setItem(KEY, method);
    } catch (error) {
      if (field) form.set(field, '');
      throw error;
    }
  });
  const focus = () => form.element.current?.querySelector('input, button[type=submit]')?.focus();
  useEffect(focus, []);
  return html`<${Form} form=${form}>
    <p class="fine">${t(`proof.${method}_text`)}</p>
    ${field && html`<${ProofField} form=${form} method=${method} />`}
    <${Actions} form=${form} label=${method === 'passkey' ? t('proof.passkey_do') : label} cancel=${cancel} />
  <//>`;
}

/**
 * Asks for one proof of identity, with buttons that change to another method.
 * @param {{methods: string[], options?: object, submit: (proof: object) => Promise<any>, label: string, cancel?: () => void}} props
 *   methods: 'passkey', 'totp', 'password', 'recovery_code'; options: the server's options for a passkey
 */
export function Proof({ methods, options, submit, label, cancel }) {
  const usable = METHODS.filter((one) => methods.includes(one) && (one !== 'passkey' || (options && supportsPasskeys())));
  const [method, setMethod] = useState(() => firstMethod(usable));
  const others = usable.filter((one) => one !== method);
  if (!method) return html`<p>${t('passkey.unsupported')} ${t('passkey.unsupported_hint')}</p>`;
  return html`
    <${ProofForm} key=${method} method=${method} options=${options} submit=${submit} label=${label} cancel=${cancel} />
    ${others.length > 0 && html`<div class="auth-links">
      ${others.map((one) => html`<button key=${one} type="button" class="link" onClick=${() => setMethod(one)}>
        ${t(`proof.use_${one}`)}
      </button>`)}
    </div>`}`;
}
