import { html, useEffect, useRef, useState } from '../lib.js';
import { t } from '../i18n.js';
import { LanguageChoice } from './shell.js';
import { Mark } from './icon.js';

/** What stands around the screens before sign-in. */
export function Door({ title, text, children }) {
  const heading = useRef();
  useEffect(() => {
    document.title = `${title} · Kontor`;
  }, [title]);
  return html`<div class="door">
    <aside class="door-side" aria-hidden="true"><${Mark} size=${44} /><p>${t('door.claim')}</p></aside>
    <header><span class="brand"><${Mark} />Kontor</span><${LanguageChoice} /></header>
    <main><div class="door-card"><h1 ref=${heading} tabindex="-1">${title}</h1>${text && html`<p>${text}</p>`}${children}</div></main>
    <footer><span>${t('door.note')}</span><a href="/docs">${t('door.api')}</a></footer>
  </div>`;
}

const KEY = 'kontor.apikey';

/**
 * The API key that registration and recovery need. The bank hands it out as a link: /register#key=…; the part behind
 * the # never reaches a server's log. It opens nothing but these doors, so it may be remembered here.
 */
export function useApiKey() {
  const [key, setKey] = useState(() => {
    const given = /^#key=(.+)$/.exec(location.hash)?.[1];
    if (given) {
      localStorage.setItem(KEY, decodeURIComponent(given));
      history.replaceState(null, '', location.pathname);
    }
    return localStorage.getItem(KEY) ?? '';
  });
  const keep = (value) => {
    localStorage.setItem(KEY, value);
    setKey(value);
  };
  return [key, keep];
}
