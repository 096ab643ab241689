import { html, useEffect } from '../lib.js';
import { BANK_NAME, PRIVACY, TERMS } from '../bank.js';
import { t } from '../i18n.js';
import { BankMark } from './icon.js';
import { LanguageChoice } from './language_choice.js';

/** The layout of the screens before sign-in. */
export function AuthLayout({ title, text, children }) {
  useEffect(() => {
    document.title = `${title} · ${BANK_NAME}`;
  }, [title]);
  return html`<div class="auth">
    <aside class="auth-side" aria-hidden="true"><${BankMark} size=${44} /><p>${t('auth.claim')}</p></aside>
    <header><span class="brand"><${BankMark} />${BANK_NAME}</span><${LanguageChoice} /></header>
    <main><div class="auth-card"><h1 tabindex="-1">${title}</h1>${text && html`<p>${text}</p>`}${children}</div></main>
    <footer>
      <span>${t('auth.note')}</span>
      <span>${TERMS && html`<a href=${TERMS}>${t('auth.terms')}</a> · `}${PRIVACY && html`<a href=${PRIVACY}>${t('auth.privacy')}</a> · `}
        <a href="/docs">${t('auth.api')}</a> · <a href="/licences">${t('auth.licences')}</a></span>
    </footer>
  </div>`;
}
