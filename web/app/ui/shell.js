import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { signOut } from '../auth.js';
import { avatarUrl } from '../avatar.js';
import { siteName } from '../bank.js';
import { dateTime, day } from '../format.js';
import { t } from '../i18n.js';
import { useUnread } from '../live_updates.js';
import { CALL, isClient, mayCall, roleName, useCaller } from '../access.js';
import { nameOf, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { menu, menuPath, SCREENS } from '../screens.js';
import { match, route } from '../router.js';
import { connection } from '../stream.js';
import { useStore } from '../store.js';
import { loadFont } from '../style.js';
import { TermsLinks } from './auth_layout.js';
import { Avatar } from './display.js';
import { useModal } from './dialog.js';
import { Notice, toastError } from './feedback.js';
import { BankMark, Icon, Mark } from './icon.js';
import { LanguageChoice } from './language_choice.js';

const isWithin = (path, base) => path === base || (base !== '/' && path.startsWith(`${base}/`));

/** The number of unread items, as a mark; note is for screen readers. */
const Count = ({ n, note }) => html`<span class="count">${n > 99 ? '99+' : n}${note && html`<span class="sr"> ${note}</span>`}</span>`;

function MenuEntry({ row, path, count }) {
  const base = menuPath(row);
  return html`<li><a href=${base} aria-current=${isWithin(path, base) ? 'page' : undefined}>
    <${Icon} name=${row.icon} /><span>${t(row.title)}</span>
    ${count ? html`<${Count} n=${count} note=${t('nav.unread')} />` : null}
  </a></li>`;
}

function MainMenu({ path, unread }) {
  return html`<nav aria-label=${t('nav.main')}>
    <a class="brand" href="/">${isClient() ? html`<${BankMark} />` : html`<${Mark} />`}${siteName()}</a>
    <ul>${menu('main').map((row) => html`
      <${MenuEntry} key=${row.path} row=${row} path=${path} count=${row.count && unread[row.count]} />`)}</ul>
  </nav>`;
}

/** An area of the menu: one entry, whose screens are listed below it while one of them is shown. */
function MenuArea({ group, path, title, icon }) {
  const entries = menu(group);
  if (!entries.length) return null;
  const open = entries.some((row) => isWithin(path, menuPath(row)));
  return html`<nav aria-label=${title}><ul>
    <li><a href=${menuPath(entries[0])} aria-expanded=${open}>
      <${Icon} name=${icon} /><span>${title}</span><${Icon} name=${open ? 'down' : 'right'} size=${12} />
    </a></li>
    ${open && html`<li><ul class="area">${entries.map((row) => html`<${MenuEntry} key=${row.path} row=${row} path=${path} />`)}</ul></li>`}
  </ul></nav>`;
}

function SideBar({ path: address }) {
  const unread = useUnread();
  const path = match(SCREENS, address)?.row.section ?? address;
  const box = useRef();
  useEffect(() => {
    box.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [path]);
  return html`<div class="side">
    <div class="side-menu" ref=${box}>
      <${MainMenu} path=${path} unread=${unread} />
      <div class="areas">
        <${MenuArea} group="admin" path=${path} title=${t('nav.administration')} icon="administration" />
        <${MenuArea} group="developers" path=${path} title=${t('nav.developers')} icon="developers" />
      </div>
    </div>
    <${ProfileLink} path=${path} />
  </div>`;
}

/** The signed-in user, as the link to their profile. */
function ProfileLink({ path }) {
  usePeople();
  const { me } = useCaller();
  const url = useStore(avatarUrl);
  const name = nameOf(me.id);
  return html`<nav class="account" aria-label=${t('nav.profile')}>
    <a class="me" href="/profile" aria-current=${path === '/profile' ? 'page' : undefined}>
      <span class="sr">${t('nav.profile')}</span><${Avatar} name=${name} url=${url} />
      <span class="two-lines"><bdi>${name}</bdi><span>${me.roles.map(roleName).join(', ')}</span></span>
    </a>
  </nav>`;
}

/** The menu of a narrow screen, as a dialog at its left edge. */
function Drawer({ path, close }) {
  const element = useRef();
  const first = useRef(path);
  useModal(element, (dialog) => dialog.querySelector('a').focus()); // By default the scrolling part would take the focus.
  useEffect(() => {
    if (path !== first.current) close();
  }, [path]);
  const onClick = (event) => event.target === element.current && close(); // a click outside of the menu
  const onClose = () => element.current?.isConnected && close(); // The event may come when the next menu is open already.
  return html`<dialog class="drawer" ref=${element} aria-label=${t('nav.main')} onCancel=${close} onClose=${onClose} onClick=${onClick}>
    <${SideBar} path=${path} />
  </dialog>`;
}

const IS_MAC = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform);

/**
 * Keeps what is typed while the palette loads, so that it does not reach the screen and is not lost.
 * @param {{current: string}} kept gets the text
 * @returns {() => void} ends it
 */
function keepTyped(kept) {
  kept.current = '';
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1) kept.current += event.key;
    else if (event.key === 'Backspace') kept.current = kept.current.slice(0, -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  addEventListener('keydown', onKeyDown, true);
  return () => removeEventListener('keydown', onKeyDown, true);
}

/** Opens the command palette: a button, and Ctrl K anywhere. The palette's module is loaded on first use. */
function PaletteButton({ path }) {
  const [Palette, setPalette] = useState(null);
  const [open, setOpen] = useState(false);
  const typed = useRef('');
  useLayoutEffect(() => setOpen(false), [path]); // A later effect could close what was opened since.
  async function show() {
    const from = route.get().path;
    const stop = keepTyped(typed);
    const module = await import('./command_palette.js').catch(toastError).finally(stop);
    if (!module) return;
    setPalette(() => module.CommandPalette);
    setOpen(route.get().path === from && !document.querySelector('dialog[open]')); // unless the user has gone on meanwhile
  }
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (!document.querySelector('dialog[open]')) show();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return html`
    <button class="palette-button" aria-haspopup="dialog" aria-keyshortcuts="Control+K" onClick=${show}>
      <${Icon} name="search" size=${16} /><span class="palette-button-text">${t('palette.open')}</span>
      <kbd aria-hidden="true">${IS_MAC ? '⌘ K' : 'Ctrl K'}</kbd>
    </button>
    ${open && html`<${Palette} typed=${typed.current} close=${() => setOpen(false)} />`}`;
}

/** The state of the live connection, as a coloured dot and in words. */
function ConnectionState() {
  const { state, retryAt } = useStore(connection);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== 'waiting') return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [state, retryAt]);
  const seconds = Math.max(1, Math.ceil(((retryAt ?? 0) - now) / 1000));
  const text = state === 'waiting' ? t('connection.waiting', { n: seconds }) : t(`connection.${state}`);
  return html`<span class=${`connection ${state}`} title=${text}><span>${text}</span></span>`;
}

/** Warns the first administrator that their password was printed on the terminal. */
function PrintedPassword() {
  if (!useCaller()?.me.password_printed) return null;
  const change = html`<a class="button quiet" href="/profile/security">${t('printed.change')}</a>`;
  return html`<${Notice} tone="warn" title=${t('printed.title')} action=${change}>${t('printed.text')}<//>`;
}

/** Tells a user whose role requires a second factor until when they must have one. Afterwards a dialog sets one up. */
function FactorDue() {
  usePreferences();
  const due = useCaller()?.me.factor_required_by;
  if (!due || new Date(due) <= new Date()) return null;
  const add = html`<a class="button quiet" href="/profile/security">${t('factor_due.do')}</a>`;
  return html`<${Notice} tone="warn" title=${t('factor_due.title')} action=${add}>${t('factor_due.text', { day: day(due) })}<//>`;
}

function NotificationsLink() {
  const { notifications: n } = useUnread();
  if (!mayCall(CALL.notifications)) return null;
  return html`<a class="icon-button" href="/notifications" title=${t('nav.notifications')}>
    <${Icon} name="bell" size=${20} />${n ? html`<${Count} n=${n} />` : null}
    <span class="sr">${n ? ` ${t('overview.unread_notifications')}` : t('nav.notifications')}</span>
  </a>`;
}

function SkipLink() {
  const skip = (event) => {
    event.preventDefault();
    document.getElementById('main').focus();
  };
  return html`<a class="button skip" href="#main" onClick=${skip}>${t('nav.skip')}</a>`;
}

function TopBar({ path, drawerOpen, openDrawer }) {
  return html`<header class="top">
    <button class="icon-button only-narrow" aria-label=${t('nav.open')} aria-expanded=${drawerOpen} onClick=${openDrawer}>
      <${Icon} name="menu" size=${20} />
    </button>
    <${PaletteButton} path=${path} />
    <span class="grow"></span>
    <${ConnectionState} />
    <${LanguageChoice} />
    <${NotificationsLink} />
    <button class="icon-button" aria-label=${t('nav.signout')} title=${t('nav.signout')} onClick=${() => signOut().catch(() => {})}>
      <${Icon} name="logout" size=${20} />
    </button>
  </header>`;
}

const FONT_DELAY_MS = 1000; // The data of the screen come first.

const IN_BAR = ['/', '/me/documents', '/chats', '/invoices'];

/** The screens of a customer at the bottom of a telephone, with a button that writes to the bank. */
function BottomBar({ path, unread }) {
  if (!isClient()) return null;
  const entries = menu('main').filter((row) => IN_BAR.includes(menuPath(row)));
  const link = (row) => html`<a key=${row.path} href=${menuPath(row)} aria-current=${isWithin(path, menuPath(row)) ? 'page' : undefined}>
    <${Icon} name=${row.icon} size=${20} /><span>${t(row.title)}</span>
    ${row.count && unread[row.count] ? html`<${Count} n=${unread[row.count]} note=${t('nav.unread')} />` : null}
  </a>`;
  return html`<nav class="bottom-bar" aria-label=${t('nav.quick')}>
    ${entries.slice(0, 2).map(link)}
    <a class="write" href="/chats?new=1"><${Icon} name="send" size=${20} /><span>${t('chats.write_to_bank')}</span></a>
    ${entries.slice(2).map(link)}
  </nav>`;
}

/** The person who printed a page, and the time; shown on paper only. */
function Printed() {
  const [at, setAt] = useState(() => new Date());
  usePeople();
  useEffect(() => {
    const now = () => setAt(new Date());
    addEventListener('beforeprint', now);
    return () => removeEventListener('beforeprint', now);
  }, []);
  return html`<p class="printed" aria-hidden="true">${nameOf(useCaller().me.id)}, ${dateTime(at)}</p>`;
}

/** The layout of every screen after sign-in. */
export function Shell({ path, children }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const timer = setTimeout(loadFont, FONT_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class="shell">
    <${SkipLink} />
    <${SideBar} path=${path} />
    ${open && html`<${Drawer} path=${path} close=${() => setOpen(false)} />`}
    <div class="column">
      <${TopBar} path=${path} drawerOpen=${open} openDrawer=${() => setOpen(true)} />
      <${Printed} />
      <main id="main" tabindex="-1"><${PrintedPassword} /><${FactorDue} />${children}</main>
      ${isClient() && html`<footer><${TermsLinks} /></footer>`}
      <${BottomBar} path=${path} unread=${useUnread()} />
    </div>
  </div>`;
}
