import { html, render, useEffect, useState } from './lib.js';
import { caller, useCaller } from './access.js';
import { leave, startSession } from './auth.js';
import { initialLanguage, switchLanguage, t, useLanguage } from './i18n.js';
import { forgetPeople } from './people.js';
import { expired, passwordRequest, session } from './session.js';
import { useStore } from './store.js';
import { go, interceptLinks, match, route } from './router.js';
import { NOT_FOUND, PUBLIC_SCREENS, SCREENS } from './screens.js';
import { AuthLayout } from './ui/auth_layout.js';
import { ConfirmDialog } from './ui/dialog.js';
import { ErrorBox, Skeleton, toastError, Toasts } from './ui/feedback.js';
import { Shell } from './ui/shell.js';

const loadScreen = (row) => import(`./screens/${row.module}.js`);

/** Renders a screen once its module is loaded; the former screen stays until then. */
function Screen({ found }) {
  const [shown, setShown] = useState(null);
  const [error, setError] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const key = found.row.path + (found.params.id ?? '');
  useEffect(() => {
    let current = true;
    setError(null);
    loadScreen(found.row).then(
      (module) => current && (performance.mark('screen'), setShown({ view: module.default, key, params: found.params })),
      () => current && setError({ status: 0, message: document.title, code: 'network' }),
    );
    return () => (current = false);
  }, [key, attempt]);
  if (error) return html`<${ErrorBox} error=${error} retry=${() => setAttempt(attempt + 1)} />`;
  if (!shown) return html`<${Skeleton} lines=${6} />`;
  const params = shown.key === key ? found.params : shown.params; // The former screen keeps its own parameters.
  return html`<${shown.view} key=${shown.key} ...${params} />`;
}

function SignedIn({ path }) {
  const loaded = useCaller();
  const [error, setError] = useState(null);
  const load = () => {
    setError(null);
    startSession().catch((failed) => session.get() && setError(failed));
  };
  useEffect(() => {
    if (!loaded) load();
  }, [loaded]);
  const signOut = html`<button class="quiet" onClick=${leave}>${t('nav.signout')}</button>`;
  if (error?.status === 403) return html`<${AuthLayout} title=${t('waiting.title')} text=${t('waiting.text')}>${signOut}<//>`;
  if (error) return html`<main class="alone"><${ErrorBox} error=${error} retry=${load} /><p>${signOut}</p></main>`;
  if (!loaded) return null;
  const found = match(SCREENS, path) ?? { row: NOT_FOUND, params: {} };
  return html`<${Shell} path=${path}><${Screen} found=${found} /><//>`;
}

/** Asks for the password when a request or an expired session needs it. The dialogs are loaded on first use. */
function Reauthentication() {
  const needed = [useStore(passwordRequest, Boolean), useStore(expired)].some(Boolean);
  const [module, setModule] = useState(null);
  useEffect(() => {
    if (needed && !module) import('./ui/reauthenticate.js').then(setModule, toastError);
  }, [needed]);
  return module && html`<${module.PasswordDialog} /><${module.SessionExpiredDialog} />`;
}

/** Returns the console's path that ?next= names; anything else, such as //host, leads to the overview. */
function nextPath() {
  const next = new URLSearchParams(location.search).get('next') ?? '/';
  return /^\/(?![/\\])/.test(next) ? next : '/';
}

function Console() {
  useLanguage();
  const { path } = useStore(route);
  const signedIn = useStore(session, Boolean);
  const user = useStore(session, (now) => now?.user_id);
  const publicScreen = match(PUBLIC_SCREENS, path);
  useEffect(() => {
    if (!signedIn && caller.get()) return leave(); // The user signed out in another tab.
    if (signedIn && caller.get() && caller.get().me.id !== user) { // Another user signed in there.
      forgetPeople();
      caller.set(null);
    }
    if (!signedIn && !publicScreen) {
      go(path === '/' ? '/signin' : `/signin?next=${encodeURIComponent(path + location.search)}`, { replace: true });
    }
    if (signedIn && publicScreen?.row.path === '/signin') go(nextPath(), { replace: true });
    return undefined;
  }, [signedIn, user, path]);
  return html`
    ${publicScreen ? html`<${Screen} found=${publicScreen} />` : signedIn ? html`<${SignedIn} path=${path} />` : null}
    <${Reauthentication} /><${ConfirmDialog} /><${Toasts} />
  `;
}

await switchLanguage(initialLanguage());
interceptLinks();
render(html`<${Console} />`, document.getElementById('console'));
