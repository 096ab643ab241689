import { html } from '../lib.js';
import { t } from '../i18n.js';
import { PageHead } from '../ui/page.js';
import { Empty } from '../ui/feedback.js';

/** What an address without a screen shows. */
export default function Missing() {
  return html`<${PageHead} title=${t('missing.title')} /><${Empty} icon="search" title=${t('missing.what')} action=${html`<a class="button quiet" href="/">${t('missing.home')}</a>`}>${t('missing.text')}<//>`;
}
