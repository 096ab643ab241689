import { html } from '../lib.js';
import { t } from '../i18n.js';
import { PageHead } from '../ui/page.js';
import { Empty } from '../ui/feedback.js';

/** The screen for an unknown address. */
export default function NotFound() {
  const home = html`<a class="button quiet" href="/">${t('not_found.home')}</a>`;
  return html`<${PageHead} title=${t('not_found.title')} />
    <${Empty} icon="search" title=${t('not_found.what')} action=${home}>${t('not_found.text')}<//>`;
}
