import { html } from '../lib.js';
import { may } from '../access.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { Notice } from '../ui/feedback.js';
import { PageHead, Tabs } from '../ui/page.js';
import { ScreeningCheck } from './screening_check.js';
import { ScreeningHit, ScreeningHits } from './screening_hits.js';
import { ScreeningLists } from './screening_lists.js';

const VIEWS = { hits: ScreeningHits, check: ScreeningCheck, lists: ScreeningLists };

/** Says which lists are too old; nothing if none is. */
function OldLists() {
  const load = useLoad(() => api.get('/v1/screening/lists', { limit: 100 }).catch(() => null));
  const old = load.data?.data.filter((list) => list.too_old) ?? [];
  return old.length > 0 && html`<${Notice} tone="warn" title=${t('screening.too_old', { names: old.map(({ name }) => name).join(', ') })}>
    ${t('screening.too_old_text')}
  <//>`;
}

/** The hits that wait for a reviewer, the comparison of a name with sanctions lists, and the lists. */
export default function Screening({ view = 'hits', id }) {
  usePreferences();
  usePeople();
  if (id) return html`<${ScreeningHit} key=${id} id=${id} />`;
  const View = VIEWS[view] ?? ScreeningHits;
  const pathOf = (name) => (name === 'hits' ? '/screening' : `/screening/${name}`);
  return html`
    <${PageHead} title=${t('nav.screening')} note=${t('screening.note')} />
    <${Tabs} label=${t('nav.screening')} current=${pathOf(view)}
      tabs=${Object.keys(VIEWS).map((name) => [pathOf(name), t(`screening.${name}`)])} />
    <${OldLists} key=${view} />
    <${View} mayLoad=${may('roles', 'update')} />`;
}
