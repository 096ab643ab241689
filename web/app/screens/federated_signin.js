import { html, useEffect, useState } from '../lib.js';
import { ApiError } from '../api.js';
import { keepLinkCode, signInByLink, signInWithCode } from '../auth.js';
import { t } from '../i18n.js';
import { nextPath } from '../router.js';
import { Notice } from '../ui/feedback.js';

const START = '/authenticate/oidc';
const FAILURES = ['unavailable', 'expired', 'cancelled', 'failed', 'no_account'];

/** A link to the bank's sign-in provider. */
export function FederatedSignIn({ name }) {
  const address = `${START}?return_to=${encodeURIComponent(nextPath())}`;
  return html`<a class="button quiet" href=${address}>${t('signin.provider', { name })}</a>`;
}

/** Takes what the provider's answer, or a link of "kontor open", left in the address, so that it stays in no history. */
function takeReturn() {
  const answer = new URLSearchParams(location.hash.slice(1));
  const found = { code: answer.get('oidc_code'), link: answer.get('oidc_link'), error: answer.get('oidc_error'),
    local: answer.get('local') };
  if (!Object.values(found).some(Boolean)) return {};
  const next = answer.get('return_to');
  history.replaceState(null, '', location.pathname + (next ? `?next=${encodeURIComponent(next)}` : location.search));
  return found;
}

/** Returns the error for a code of the address. Texts of the address are never shown. */
function errorFor(code) {
  const reason = FAILURES.find((one) => code === `auth_m.oidc_${one}`) ?? 'failed';
  return new ApiError({ status: 400, code: `auth_m.oidc_${reason}`, message: t(`signin.oidc_${reason}`), hint: t('signin.oidc_hint') });
}

/**
 * Completes a sign-in with the provider, or with a link of "kontor open", when the address has the one-time code.
 * @param {(step: object|null) => void} next receives the next step
 * @returns {{error: any, linking: boolean}} linking: the user must sign in once so that the provider is linked with them
 */
export function useFederatedReturn(next) {
  const [{ code, link, local, error: failure }] = useState(takeReturn);
  const [error, setError] = useState(() => failure && errorFor(failure));
  useEffect(() => {
    if (link) keepLinkCode(link);
    if (code) signInWithCode(code).then(next, setError);
    else if (local) signInByLink(local).then(next, setError);
  }, []);
  return { error, linking: Boolean(link) };
}

/** Explains why the user signs in with their password although they have just signed in with the provider. */
export const LinkNotice = () => html`<${Notice} title=${t('signin.link')}>${t('signin.link_text')}<//>`;
