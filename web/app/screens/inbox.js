import { html, useEffect } from '../lib.js';
import { useAddress } from '../address.js';
import { may } from '../access.js';
import { inboxChanges } from '../conversations.js';
import { t } from '../i18n.js';
import { useList } from '../list.js';
import { useNotifications } from '../live_updates.js';
import { nameOf, usePeople } from '../people.js';
import { useStore } from '../store.js';
import { Avatar, Dash, When } from '../ui/display.js';
import { Empty } from '../ui/feedback.js';
import { PageHead, Tabs } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { RecordList } from '../ui/record_list.js';

const VIEWS = ['open', 'mine', 'waiting', 'snoozed', 'closed'];
const RELOAD_MS = 30_000; // a thread that nobody answers has no participant among the staff who would be notified

const Customer = ({ id }) => html`<span class="with-avatar">
  <${Avatar} name=${nameOf(id)} size="s" /><bdi class="clip">${nameOf(id)}</bdi>
</span>`;

const columns = () => [
  { key: 'customer', label: t('inbox.customer'), cell: (row) => html`<${Customer} id=${row.user_id} />` },
  { key: 'preview', label: t('chats.last'), cell: (row) => html`<span class="chat-last">${row.preview || t('inbox.no_message')}</span>` },
  { key: 'assignee', label: t('inbox.assignee'), minor: true,
    cell: (row) => (row.assignee ? html`<${Person} id=${row.assignee} />` : html`<${Dash} />`) },
  { key: 'changed_at', label: t('field.updated_at'), sort: 'changed_at', beside: true,
    cell: (row) => html`<${When} at=${row.changed_at} />` },
];

const address = (view) => (view === VIEWS[0] ? '/inbox' : `/inbox?view=${view}`);

/** The messages of customers to the bank: the threads of a view. */
function Threads() {
  usePeople();
  const { query, beside } = useAddress();
  const view = VIEWS.includes(query.get('view')) ? query.get('view') : VIEWS[0]; // It stands in the address.
  const list = useList('/v1/inbox', { limit: 50, sort: '-changed_at', fixed: { view } });
  const changes = useStore(inboxChanges);
  useNotifications(list.reload);
  useEffect(() => {
    if (changes) list.reload();
  }, [changes]);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && list.reload(), RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  return html`
    <${PageHead} title=${t('nav.inbox') + (beside ? ` · ${t(`inbox.view.${view}`)}` : '')} note=${t('inbox.note')} />
    ${!beside && html`<${Tabs} label=${t('inbox.views')} tabs=${VIEWS.map((one) => [address(one), t(`inbox.view.${one}`)])}
      current=${address(view)} />`}
    <${RecordList} list=${list} title=${t(`inbox.view.${view}`)} columns=${columns()} link=${(row) => `/inbox/${row.id}`}
      nameOf=${(row) => nameOf(row.user_id)}
      empty=${html`<${Empty} icon="check" title=${t('inbox.none')}>${t('inbox.none_text')}<//>`} />`;
}

export default () => (may('customers', 'read_all')
  ? html`<${Threads} />`
  : html`<${PageHead} title=${t('nav.inbox')} /><${Empty} icon="chats" title=${t('inbox.not_yours')} />`);
