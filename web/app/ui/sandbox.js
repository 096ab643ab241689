import { html, useEffect, useState } from '../lib.js';
import { dateTime } from '../format.js';
import { t, useLanguage } from '../i18n.js';
import { usePreferences } from '../preferences.js';

const POLL_MS = 10_000; // the command line moves the clock, too

/** Whether the server is a sandbox for developers; it says so in the page. */
export const IN_SANDBOX = Boolean(document.querySelector('meta[name="kontor-mode"][content="sandbox"]'));

/** Returns by how many milliseconds the server's clock is ahead of this browser's. */
async function ahead() {
  const { timestamp } = await (await fetch('/healthz', { cache: 'no-store' })).json();
  return new Date(timestamp).getTime() - Date.now();
}

/** The mark of a sandbox, with its time. */
export function SandboxMark() {
  useLanguage();
  usePreferences();
  const [offset, setOffset] = useState(null);
  const [, setTicks] = useState(0);
  useEffect(() => {
    const read = () => ahead().then(setOffset, () => {}).then(() => setTicks((n) => n + 1));
    read();
    const timer = setInterval(read, POLL_MS);
    addEventListener('focus', read);
    return () => (clearInterval(timer), removeEventListener('focus', read));
  }, []);
  const time = offset !== null && dateTime(Date.now() + offset);
  return html`<aside class="sandbox" aria-label=${t('sandbox.name')}>${time ? t('sandbox.time', { time }) : t('sandbox.name')}</aside>`;
}
