import { html, useEffect } from '../lib.js';
import { t } from '../i18n.js';
import { Mark } from './icon.js';
import { LanguageChoice } from './language_choice.js';

/** The layout of the screens before sign-in. */
export function AuthLayout({ title, text, children }) {
  useEffect(() => {
    document.title = `${title} · Kontor`;
  }, [title]);
  return html`<div class="auth">
    <aside class="auth-side" aria-hidden="true"><${Mark} size=${44} /><p>${t('auth.claim')}</p></aside>
    <header><span class="brand"><${Mark} />Kontor</span><${LanguageChoice} /></header>
    <main><div class="auth-card"><h1 tabindex="-1">${title}</h1>${text && html`<p>${text}</p>`}${children}</div></main>
    <footer>
      <span>${t('auth.note')}</span>
      <span><a href="/docs">${t('auth.api')}</a> · <a href="/licences">${t('auth.licences')}</a></span>
    </footer>
  </div>`;
}
