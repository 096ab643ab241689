import { html, useEffect } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { shortTime } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { nameOf, usePeople } from '../people.js';
import { route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { loadStyle } from '../style.js';
import { Avatar } from '../ui/display.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { PageHead } from '../ui/page.js';
import { InboxThread } from './inbox_thread.js';

await loadStyle('inbox');

const VIEWS = ['open', 'mine', 'waiting', 'snoozed', 'closed'];
const SHOWN = 50; // threads
const RELOAD_MS = 30_000; // a thread that nobody answers has no participant among the staff who would be notified

/** The chosen view of the threads, which stands in the address. */
const viewOf = (query) => (VIEWS.includes(query.get('view')) ? query.get('view') : 'open');

function Views({ view }) {
  return html`<div class="tabs" role="group" aria-label=${t('inbox.views')}>${VIEWS.map((one) => html`
    <button key=${one} type="button" class=${one === view ? 'small' : 'quiet small'} aria-pressed=${one === view}
      onClick=${() => setQuery({ view: one === 'open' ? '' : one })}>${t(`inbox.view.${one}`)}</button>`)}
  </div>`;
}

function Entry({ thread, current, query }) {
  const name = nameOf(thread.user_id);
  return html`<li><a href=${`/inbox/${thread.id}${query}`} aria-current=${current ? 'page' : undefined}>
    <${Avatar} name=${name} />
    <span class="chat-text">
      <span class="chat-name"><bdi>${name}</bdi></span>
      <time class="fine" dateTime=${thread.changed_at}>${shortTime(thread.changed_at)}</time>
      <span class="chat-last">${thread.assignee
        && html`<span class="fine">${t('inbox.answers', { name: nameOf(thread.assignee) })} · </span>`}${
        thread.preview || t('inbox.no_message')}</span>
    </span>
  </a></li>`;
}

/** The messages of customers to the bank: the threads of a view, and the open one with its customer. */
export default function Inbox({ id }) {
  usePeople();
  const { query } = useStore(route);
  const view = viewOf(query);
  const kept = view === 'open' ? '' : `?view=${view}`;
  const list = useLoad(() => api.get('/v1/inbox', { view, limit: SHOWN, sort: '-changed_at' }), [view]);
  useNotifications(list.reload);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && list.reload(), RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  if (!may('customers', 'read_all')) {
    return html`<${PageHead} title=${t('nav.inbox')} /><${Empty} icon="chats" title=${t('inbox.not_yours')} />`;
  }
  return html`
    <${PageHead} title=${t('nav.inbox')} note=${t('inbox.note')} />
    <${Views} view=${view} />
    <div class=${`messenger inbox${id ? ' open' : ''}`}>
      <section class="chat-list" aria-label=${t(`inbox.view.${view}`)}>
        <${Loaded} load=${list} lines=${6}>${({ data }) => (data.length
          ? html`<ul>${data.map((thread) => html`
              <${Entry} key=${thread.id} thread=${thread} current=${thread.id === id} query=${kept} />`)}</ul>`
          : html`<${Empty} icon="check" title=${t('inbox.none')}>${t('inbox.none_text')}<//>`)}<//>
      </section>
      ${id
        ? html`<${InboxThread} key=${id} id=${id} back=${`/inbox${kept}`} changed=${list.reload} />`
        : html`<section class="thread blank"><${Empty} icon="chats" title=${t('inbox.choose')} /></section>`}
    </div>`;
}
