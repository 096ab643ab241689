import { html } from '../lib.js';
import { chooseLanguage } from '../auth.js';
import { LANGUAGES, language, t } from '../i18n.js';
import { toastError } from './feedback.js';

/** The choice of language; each language has its own name for itself. */
export function LanguageChoice() {
  const onChange = (event) => chooseLanguage(event.target.value).catch(toastError);
  return html`<select class="language" aria-label=${t('language')} value=${language.get()} onChange=${onChange}>
    ${Object.entries(LANGUAGES).map(([tag, name]) => html`
      <option key=${tag} value=${tag} lang=${tag} selected=${tag === language.get()}>${name}</option>`)}
  </select>`;
}
