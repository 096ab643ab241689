import { html } from '../lib.js';
import { t } from '../i18n.js';
import { PageHead } from '../ui/page.js';
import { Empty } from '../ui/feedback.js';

/** Replaces a screen whose endpoint the caller may not call. */
export default function NoAccess() {
  const home = html`<a class="button quiet" href="/">${t('not_found.home')}</a>`;
  return html`<${PageHead} title=${t('no_access.title')} />
    <${Empty} icon="roles" title=${t('no_access.text')} action=${home}>${t('advice.forbidden')}<//>`;
}
