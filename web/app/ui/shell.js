import { html, useEffect, useRef, useState } from '../lib.js';
import { chooseLanguage, signOut } from '../auth.js';
import { LANGUAGES, language, t } from '../i18n.js';
import { useUnread } from '../live.js';
import { roleName, useCaller } from '../access.js';
import { nameOf, picture, usePeople } from '../people.js';
import { menu, SCREENS } from '../screens.js';
import { match } from '../router.js';
import { connection } from '../stream.js';
import { useStore } from '../store.js';
import { Avatar } from './data.js';
import { useModal } from './dialog.js';
import { Notice, toastError } from './feedback.js';
import { Icon, Mark } from './icon.js';

const within = (path, base) => path === base || (base !== '/' && path.startsWith(`${base}/`));
const shownCount = (n) => (n > 99 ? '99+' : n);

function Group({ entries, path, title, unread, children }) {
  if (!entries.length) return null;
  return html`<nav aria-label=${title ?? t('nav.main')}>
    ${children}${title && html`<h2>${title}</h2>`}
    <ul>${entries.map((row) => {
      const base = row.path.replace(/\/:.*/, '') || '/';
      const count = row.count && unread[row.count];
      return html`<li key=${base}><a href=${base} aria-current=${within(path, base) ? 'page' : undefined}>
        <${Icon} name=${row.icon} /><span>${t(row.title)}</span>
        ${count ? html`<span class="count">${shownCount(count)}<span class="sr"> ${t('nav.unread')}</span></span>` : null}
      </a></li>`;
    })}</ul>
  </nav>`;
}

function Side({ path: at }) {
  const unread = useUnread();
  const path = match(SCREENS, at)?.row.section ?? at;
  return html`<div class="side"><div class="side-menu">
    <${Group} entries=${menu('main')} path=${path} unread=${unread}><a class="brand" href="/"><${Mark} />Kontor</a><//>
    <${Group} entries=${menu('admin')} path=${path} title=${t('nav.administration')} unread=${unread} />
    </div><${Me} path=${path} />
  </div>`;
}

/** Who is signed in, and the way to his own settings. */
function Me({ path }) {
  usePeople();
  const { me } = useCaller();
  const url = useStore(picture);
  const name = nameOf(me.id);
  return html`<nav class="account" aria-label=${t('nav.profile')}><a class="me" href="/profile" aria-current=${path === '/profile' ? 'page' : undefined}><span class="sr">${t('nav.profile')}</span>
    <${Avatar} name=${name} url=${url} /><span class="two-lines"><span>${name}</span><span>${me.roles.map(roleName).join(', ')}</span></span></a></nav>`;
}

/** The menu of a narrow screen, as a dialog at its left edge. */
function Drawer({ path, close }) {
  const element = useRef();
  const first = useRef(path);
  useModal(element, (dialog) => dialog.querySelector('a').focus()); // Not the part that scrolls.
  useEffect(() => {
    if (path !== first.current) close();
  }, [path]);
  const outside = (event) => event.target === element.current && close();
  return html`<dialog class="drawer" ref=${element} aria-label=${t('nav.main')} onCancel=${close} onClose=${close} onClick=${outside}><${Side} path=${path} /></dialog>`;
}

const MAC = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform);

/** The way to everything by typing: a button, and Ctrl K from anywhere. Its dialog is fetched when it is first wanted. */
function Finder({ path }) {
  const [Palette, setPalette] = useState(null);
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  async function show() {
    const module = await import('./palette.js').catch(toastError);
    if (!module) return;
    setPalette(() => module.Palette);
    setOpen(true);
  }
  useEffect(() => {
    const onKey = (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (!document.querySelector('dialog[open]')) show();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return html`<button class="finder" aria-haspopup="dialog" aria-keyshortcuts="Control+K" onClick=${show}><${Icon} name="search" size=${16} /><span class="finder-text">${t('finder.open')}</span><kbd aria-hidden="true">${MAC ? '⌘ K' : 'Ctrl K'}</kbd></button>
    ${open && html`<${Palette} close=${() => setOpen(false)} />`}`;
}

/** Whether news arrive by themselves now, in the colour of a lamp and in words. */
function Signal() {
  const { state, retryAt } = useStore(connection);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== 'waiting') return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [state, retryAt]);
  const seconds = Math.max(1, Math.ceil(((retryAt ?? 0) - now) / 1000));
  const text = state === 'waiting' ? t('signal.waiting', { n: seconds }) : t(`signal.${state}`);
  return html`<span class=${`signal ${state}`} title=${text}><span>${text}</span></span>`;
}

/** The choice of language, by each language's own name. */
export const LanguageChoice = () => html`<select class="language" aria-label=${t('language')} value=${language.get()} onChange=${(event) => chooseLanguage(event.target.value).catch(toastError)}>
  ${Object.entries(LANGUAGES).map(([tag, name]) => html`<option key=${tag} value=${tag} lang=${tag} selected=${tag === language.get()}>${name}</option>`)}
</select>`;

/** Reminds the administrator of the first start that somebody may have read the password on the terminal. */
function PrintedPassword() {
  if (!useCaller()?.me.password_printed) return null;
  return html`<${Notice} tone="warn" title=${t('printed.title')} action=${html`<a class="button quiet" href="/profile">${t('printed.change')}</a>`}>${t('printed.text')}<//>`;
}

/** What stands around every screen once somebody is signed in. */
export function Shell({ path, children }) {
  const unread = useUnread();
  const [open, setOpen] = useState(false);
  return html`<div class="shell">
    <a class="button skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>${t('nav.skip')}</a>
    <${Side} path=${path} />
    ${open && html`<${Drawer} path=${path} close=${() => setOpen(false)} />`}
    <div class="column">
      <header class="top">
        <button class="icon-button only-narrow" aria-label=${t('nav.open')} aria-expanded=${open} onClick=${() => setOpen(true)}><${Icon} name="menu" size=${20} /></button>
        <${Finder} path=${path} />
        <span class="grow"></span>
        <${Signal} />
        <${LanguageChoice} />
        <a class="icon-button" href="/notifications" title=${t('nav.notifications')}><${Icon} name="bell" size=${20} />${unread.notifications ? html`<span class="count">${shownCount(unread.notifications)}</span>` : null}<span class="sr"> ${unread.notifications ? t('overview.unread_notifications') : t('nav.notifications')}</span></a>
        <button class="icon-button" aria-label=${t('nav.signout')} title=${t('nav.signout')} onClick=${() => signOut().catch(() => {})}><${Icon} name="logout" size=${20} /></button>
      </header>
      <main id="main" tabindex="-1"><${PrintedPassword} />${children}</main>
    </div>
  </div>`;
}
