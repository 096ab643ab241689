import { html, useState } from '../lib.js';
import { t } from '../i18n.js';
import { Field } from '../ui/form.js';

const KEY = 'kontor.apikey';

/**
 * Reads and keeps the API key that registration needs. The bank distributes it as a link,
 * /register#key=…; browsers do not send the part after the # to servers, so it appears in no log. The key opens only this
 * endpoint, so it may stay in localStorage.
 */
export function useRegistrationKey() {
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

/** The field for the key, shown when the browser has none. */
export const KeyField = ({ form }) => html`<${Field} form=${form} name="api_key" label=${t('register.key')} hint=${t('register.key_hint')}
  autocomplete="off" spellcheck=${false} />`;
