import { html, render, useEffect, useMemo, useRef, useState } from './lib.js';
import { Beside } from './address.js';
import { caller, NO_ROLE, useCaller } from './access.js';
import { siteName } from './bank.js';
import { forgetUser, leave, linkProvider, startSession } from './auth.js';
import { initialLanguage, loadTexts, switchLanguage, t, useLanguage } from './i18n.js';
import { keepProviderProof } from './provider_proof.js';
import { expired, factorRequest, proofRequest, session } from './session.js';
import { useStore } from './store.js';
import { watchLeaving } from './unsaved.js';
import { go, interceptLinks, match, nextPath, route } from './router.js';
import { listBeside, menuPath, NOT_FOUND, PUBLIC_SCREENS, SCREENS, ownRow, titleOf } from './screens.js';
import { AuthLayout } from './ui/auth_layout.js';
import { ConfirmDialog } from './ui/dialog.js';
import { connections, useReconnected } from './load.js';
import { ErrorBox, Skeleton, toast, toastError, Toasts } from './ui/feedback.js';
import { keepEnterInPlace } from './ui/held_enter.js';
import { PageHead } from './ui/page.js';
import { IN_SANDBOX, SandboxMark } from './ui/sandbox.js';
import { Shell } from './ui/shell.js';
import { useWalk, useWide } from './ui/bench.js';

/** Loads a module together with the parts of the texts that it needs. */
const withTexts = async (module, parts = []) => (await Promise.all([module, ...parts.map(loadTexts)]))[0];

const loadScreen = (row) => withTexts(import(`./screens/${row.module}.js`), row.texts);

/** Renders a screen once its module is loaded; the former screen stays until then. A list beside a record does not name the page. */
function Screen({ found, beside }) {
  const [shown, setShown] = useState(null);
  const [error, setError] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const key = found.row.path + (found.params.id ?? '');
  const title = t(titleOf(found.row));
  useReconnected(error?.since, () => setAttempt((n) => n + 1));
  useEffect(() => {
    let current = true;
    const since = connections();
    setError(null);
    if (!beside) document.title = `${title} · ${siteName()}`; // until the screen sets its own
    loadScreen(found.row).then(
      (module) => current && (performance.mark('screen'), setShown({ view: module.default, key, params: found.params })),
      () => current && setError({ status: 0, message: t('error.network'), code: 'network', since }),
    );
    return () => (current = false);
  }, [key, attempt]);
  if (error) return html`<${PageHead} title=${title} /><${ErrorBox} error=${error} retry=${() => setAttempt(attempt + 1)} />`;
  if (!shown) return html`<${Skeleton} lines=${6} />`;
  const params = shown.key === key ? found.params : shown.params; // The former screen keeps its own parameters.
  return html`
    ${shown.key !== key && html`<progress class="starting" aria-label=${t('loading')}></progress>`}
    <${shown.view} key=${shown.key} ...${params} />`;
}

/**
 * The screen of an address; in a wide window, a record is on the right of its list, which stays. A record has its own place in narrow
 * windows, too: a change of the width must not mount it again, because its forms would be lost.
 */
function Stage({ found }) {
  const wide = useWide();
  const isRecord = Boolean(listBeside(found));
  const list = wide ? listBeside(found) : null;
  const path = list && menuPath(list);
  const pane = useMemo(() => path && { path, own: list.path === found.row.path }, [path, found.row.path]);
  const box = useRef();
  useWalk(box, Boolean(list) && !pane.own);
  return html`<div class=${list ? 'bench open' : 'bench'} ref=${box}>
    ${(list || !isRecord) && html`<${Beside.Provider} key="list" value=${pane}>
      <div class="bench-list">
        <${Screen} found=${list ? { row: list, params: {} } : found} beside=${Boolean(list)} />
      </div>
    <//>`}
    ${isRecord && html`<div key="record" class="bench-record"><${Screen} found=${found} /></div>`}
  </div>`;
}

function SignedIn({ path }) {
  const loaded = useCaller();
  const [error, setError] = useState(null);
  const load = () => {
    setError(null);
    startSession().then(
      () => linkProvider().then((linked) => linked && toast(t('factor_provider.linked')), toastError),
      (failed) => session.get() && setError(failed),
    );
  };
  useEffect(() => {
    if (!loaded) load();
  }, [loaded]);
  const signOut = html`<button class="quiet" onClick=${leave}>${t('nav.signout')}</button>`;
  if (error?.details?.reason === NO_ROLE) return html`<${AuthLayout} title=${t('waiting.title')} text=${t('waiting.text')}>${signOut}<//>`;
  if (error) return html`<main class="alone"><${ErrorBox} error=${error} retry=${load} /><p>${signOut}</p></main>`;
  if (!loaded) return null;
  const { row, params } = match(SCREENS, path) ?? { row: NOT_FOUND, params: {} };
  const found = { row: ownRow(row), params };
  return html`<${Shell} path=${path}><${Stage} found=${found} /><//>`;
}

const loadReauthenticate = () => withTexts(import('./ui/reauthenticate.js'), ['security']);
const loadRequiredFactor = () => withTexts(import('./ui/required_factor.js'), ['security']);

const RETRY_MS = 3000;

/** Returns a module that is loaded when it is needed for the first time; null until then. Requests wait for it, so it is tried again. */
function useModule(needed, load) {
  const [module, setModule] = useState(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (needed && !module) load().then(setModule, () => setTimeout(() => setAttempt((n) => n + 1), RETRY_MS));
  }, [needed, attempt]);
  return module;
}

/** Asks for a proof of identity, a new sign-in or a second factor when a request needs it. */
function Reauthentication() {
  const needed = [useStore(proofRequest, Boolean), useStore(expired)].some(Boolean);
  const again = useModule(needed, loadReauthenticate);
  const factor = useModule(useStore(factorRequest, Boolean), loadRequiredFactor);
  return html`
    ${factor && html`<${factor.RequiredFactorDialog} />`}
    ${again && html`<${again.ProofDialog} /><${again.SessionExpiredDialog} />`}`;
}

function Console() {
  useLanguage();
  const { path } = useStore(route);
  const signedIn = useStore(session, Boolean);
  const user = useStore(session, (now) => now?.user_id);
  const publicScreen = match(PUBLIC_SCREENS, path);
  useEffect(() => {
    const isLeft = caller.get() && caller.get().me.id !== user; // in another tab, which may have the session of another user by now
    if (isLeft) forgetUser();
    if (isLeft && !signedIn) return go('/signin');
    if (!signedIn && !publicScreen) {
      go(path === '/' ? '/signin' : `/signin?next=${encodeURIComponent(path + location.search)}`, { replace: true });
    }
    if (signedIn && publicScreen?.row.path === '/signin') go(nextPath(), { replace: true });
    return undefined;
  }, [signedIn, user, path]);
  return html`
    ${IN_SANDBOX && html`<${SandboxMark} />`}
    ${publicScreen ? html`<${Screen} found=${publicScreen} />` : signedIn ? html`<${SignedIn} key=${user} path=${path} />` : null}
    <${Reauthentication} /><${ConfirmDialog} /><${Toasts} />
  `;
}

keepProviderProof();
await switchLanguage(initialLanguage());
interceptLinks();
watchLeaving();
keepEnterInPlace();
const place = document.getElementById('console');
place.replaceChildren(); // the sign of loading
render(html`<${Console} />`, place);
