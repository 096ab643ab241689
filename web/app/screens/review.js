import { html } from '../lib.js';
import { may } from '../access.js';
import { t } from '../i18n.js';
import { Empty } from '../ui/feedback.js';
import { PageHead } from '../ui/page.js';
import { ReviewCase } from './review_case.js';
import { ReviewQueue } from './review_queue.js';

/** The work of reviewers: the queue of open cases, or one case of it. */
export default function Review({ id }) {
  if (!may('customers', 'update')) {
    return html`<${PageHead} title=${t('nav.review')} /><${Empty} icon="roles" title=${t('review.not_yours')} />`;
  }
  return id ? html`<${ReviewCase} id=${id} />` : html`<${ReviewQueue} />`;
}
