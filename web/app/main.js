import { html, render, useEffect, useState } from './lib.js';
import { caller, useCaller } from './access.js';
import { enter, leave } from './auth.js';
import { initialLanguage, t, useLanguage, useLanguageTexts } from './i18n.js';
import { session } from './session.js';
import { useStore } from './store.js';
import { go, interceptLinks, match, route } from './router.js';
import { MISSING, PUBLIC_SCREENS, SCREENS } from './screens.js';
import { ErrorBox, Skeleton, Toasts } from './ui/feedback.js';
import { Questions } from './ui/dialog.js';
import { Door } from './ui/door.js';
import { Shell } from './ui/shell.js';
import { ProveAgain, SignInAgain } from './ui/again.js';

/** Draws a screen once its module is here; the former one stays until then. */
function Screen({ found }) {
  const [shown, setShown] = useState(null);
  const [error, setError] = useState(null);
  const [turn, setTurn] = useState(0);
  const key = found.row.path + (found.params.id ?? '');
  useEffect(() => {
    let current = true;
    setError(null);
    found.row.load().then(
      (module) => current && (performance.mark('screen'), setShown({ view: module.default, key, params: found.params })),
      () => current && setError({ status: 0, message: document.title, code: 'network' }),
    );
    return () => (current = false);
  }, [key, turn]);
  if (error) return html`<${ErrorBox} error=${error} retry=${() => setTurn(turn + 1)} />`;
  if (!shown) return html`<${Skeleton} lines=${6} />`;
  const params = shown.key === key ? found.params : shown.params; // The former screen keeps its own until it goes.
  return html`<${shown.view} key=${shown.key} ...${params} />`;
}

function SignedIn({ path }) {
  const known = useCaller();
  const [error, setError] = useState(null);
  const load = () => {
    setError(null);
    enter().catch((failed) => session.get() && setError(failed));
  };
  useEffect(() => {
    if (!known) load();
  }, [known]);
  if (error?.status === 403) return html`<${Door} title=${t('waiting.title')} text=${t('waiting.text')}><button class="quiet" onClick=${leave}>${t('nav.signout')}</button><//>`;
  if (error) return html`<main class="alone"><${ErrorBox} error=${error} retry=${load} /><p><button class="quiet" onClick=${leave}>${t('nav.signout')}</button></p></main>`;
  if (!known) return null;
  const found = match(SCREENS, path) ?? { row: MISSING, params: {} };
  return html`<${Shell} path=${path}><${Screen} found=${found} /><//>`;
}

function Console() {
  useLanguage();
  const { path } = useStore(route);
  const signedIn = useStore(session, Boolean);
  const user = useStore(session, (now) => now?.user_id);
  const door = match(PUBLIC_SCREENS, path);
  useEffect(() => {
    if (!signedIn && caller.get()) return leave(); // Signed out in another tab.
    if (signedIn && caller.get() && caller.get().me.id !== user) caller.set(null); // Somebody else signed in there.
    if (!signedIn && !door) go(`/signin${path === '/' ? '' : `?next=${encodeURIComponent(path + location.search)}`}`, { replace: true });
    if (signedIn && door?.row.path === '/signin') go(new URLSearchParams(location.search).get('next')?.replace(/^(?!\/(?!\/)).*/, '/') ?? '/', { replace: true });
    return undefined;
  }, [signedIn, user, path]);
  return html`
    ${door ? html`<${Screen} found=${door} />` : signedIn ? html`<${SignedIn} path=${path} />` : null}
    <${ProveAgain} /><${SignInAgain} /><${Questions} /><${Toasts} />
  `;
}

await useLanguageTexts(initialLanguage());
interceptLinks();
render(html`<${Console} />`, document.getElementById('console'));
