import { html, useEffect } from '../lib.js';
import { BANK_NAME, PRIVACY, TERMS } from '../bank.js';
import { t } from '../i18n.js';
import { BankMark } from './icon.js';
import { LanguageChoice } from './language_choice.js';

const LEGAL = [[TERMS, 'auth.terms'], [PRIVACY, 'auth.privacy']].filter(([url]) => url);

/** The bank's name and the links to its terms and its privacy policy, if it has set them. */
export const TermsLinks = () => LEGAL.length > 0 && html`<span class="terms">${BANK_NAME}
  ${LEGAL.map(([url, key]) => html`<a key=${key} href=${url} target="_blank" rel="noopener">${t(key)}</a>`)}</span>`;

/** The layout of the screens before sign-in. */
export function AuthLayout({ title, text, children }) {
  useEffect(() => {
    document.title = `${title} · ${BANK_NAME}`;
  }, [title]);
  const brand = html`<span class="brand"><${BankMark} size=${44} />${BANK_NAME}</span>`;
  return html`<div class="auth">
    <aside class="auth-side" aria-hidden="true">${brand}<p>${t('auth.claim')}</p></aside>
    <header><span class="brand"><${BankMark} />${BANK_NAME}</span><${LanguageChoice} /></header>
    <main><div class="auth-card"><h1 tabindex="-1">${title}</h1>${text && html`<p>${text}</p>`}${children}</div></main>
    <footer>
      <span>${t('auth.note')}</span>
      <${TermsLinks} />
      <span><a href="/docs">${t('auth.api')}</a> · <a href="/licences">${t('auth.licences')}</a></span>
    </footer>
  </div>`;
}
