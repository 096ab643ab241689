import { html, useEffect, useRef, useState } from '../lib.js';
import { chooseLanguage, signOut } from '../auth.js';
import { LANGUAGES, language, t } from '../i18n.js';
import { useUnread } from '../live.js';
import { myId } from '../access.js';
import { nameOf, usePeople } from '../people.js';
import { menu, ROUTES } from '../routes.js';
import { match } from '../router.js';
import { connection } from '../stream.js';
import { useStore } from '../store.js';
import { useModal } from './dialog.js';
import { toastError } from './feedback.js';
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
  const path = match(ROUTES, at)?.row.section ?? at;
  return html`<div class="side">
    <${Group} entries=${menu('main')} path=${path} unread=${unread}><a class="brand" href="/"><${Mark} />Kontor</a><//>
    <${Group} entries=${menu('admin')} path=${path} title=${t('nav.administration')} unread=${unread} />
  </div>`;
}

/** The menu of a narrow screen, as a dialog at its left edge. */
function Drawer({ path, close }) {
  const element = useRef();
  const first = useRef(path);
  useModal(element);
  useEffect(() => {
    if (path !== first.current) close();
  }, [path]);
  const outside = (event) => event.target === element.current && close();
  return html`<dialog class="drawer" ref=${element} aria-label=${t('nav.main')} onCancel=${close} onClose=${close} onClick=${outside}><${Side} path=${path} /></dialog>`;
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

/** What stands around every screen once somebody is signed in. */
export function Shell({ path, children }) {
  usePeople();
  const unread = useUnread();
  const [open, setOpen] = useState(false);
  return html`<div class="shell">
    <a class="button skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>${t('nav.skip')}</a>
    <${Side} path=${path} />
    ${open && html`<${Drawer} path=${path} close=${() => setOpen(false)} />`}
    <div class="column">
      <header class="top">
        <button class="icon-button only-narrow" aria-label=${t('nav.open')} aria-expanded=${open} onClick=${() => setOpen(true)}><${Icon} name="menu" size=${20} /></button>
        <span class="grow"></span>
        <${Signal} />
        <${LanguageChoice} />
        <a class="icon-button" href="/notifications" title=${t('nav.notifications')}><${Icon} name="bell" size=${20} />${unread.notifications ? html`<span class="count">${shownCount(unread.notifications)}</span>` : null}<span class="sr"> ${unread.notifications ? t('overview.unread_notifications') : t('nav.notifications')}</span></a>
        <a class="icon-button" href="/profile" aria-label=${t('nav.profile')} title=${nameOf(myId())}><${Icon} name="profile" size=${20} /></a>
        <button class="icon-button" aria-label=${t('nav.signout')} title=${t('nav.signout')} onClick=${() => signOut().catch(() => {})}><${Icon} name="logout" size=${20} /></button>
      </header>
      <main id="main" tabindex="-1">${children}</main>
    </div>
  </div>`;
}
