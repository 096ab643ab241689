import { html, useEffect } from '../lib.js';
import { api } from '../api.js';
import { isClient, may } from '../access.js';
import { conversations, loadConversations, loadMoreConversations, writeToBank } from '../conversations.js';
import { shortTime } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { firstLoad } from '../live_updates.js';
import { hasName, isService, isStaff, myId, nameOf, usePeople } from '../people.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { ChatName, plainChatName } from '../ui/chat_name.js';
import { Avatar } from '../ui/display.js';
import { Empty, Loaded, toastError, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { loadStyle } from '../style.js';
import { CustomerPanel } from './inbox_customer.js';
import { NewChat } from './new_chat.js';
import { Thread } from './thread.js';

await loadStyle('inbox');

/** The participant of a chat who is a customer of the bank; undefined without one, and for callers who may not read customers. */
const customerOf = (chat) => (may('customers', 'read_all')
  ? chat?.participants.find((id) => id !== myId() && hasName(id) && !isStaff(id) && !isService(id))
  : undefined);

/** The author of a chat's last message: the user, or one of several others; nothing in a direct chat. */
function authorOf(chat, message) {
  if (message.senderId === myId()) return `${t('chats.you')}: `;
  return chat.participants.length > 2 && message.type !== 'system' ? html`<bdi>${nameOf(message.senderId)}</bdi>: ` : '';
}

function Entry({ chat, current }) {
  const last = chat.lastMessage;
  const unread = chat.unreadCount > 0;
  return html`<li><a href=${`/chats/${chat.id}`} aria-current=${current ? 'page' : undefined} class=${unread ? 'unread' : ''}>
    <${Avatar} name=${plainChatName(chat)} />
    <span class="chat-text">
      <span class="chat-name"><${ChatName} chat=${chat} /></span>
      <time class="fine" dateTime=${chat.updatedAt}>${shortTime(last?.createdAt ?? chat.updatedAt)}</time>
      <span class="chat-last">${last ? html`${authorOf(chat, last)}${last.content}` : t('chats.no_messages')}</span>
      ${unread ? html`<span class="count">${chat.unreadCount}<span class="sr"> ${t('nav.unread')}</span></span>` : null}
    </span>
  </a></li>`;
}

function ChatList({ load, current }) {
  const list = useStore(conversations);
  const more = () => loadMoreConversations().catch(toastError);
  const entries = () => html`<ul>
    ${list.chats.map((chat) => html`<${Entry} key=${chat.id} chat=${chat} current=${chat.id === current} />`)}
  </ul>${list.more && html`<button class="quiet small older" onClick=${more}>${t('chats.more')}</button>`}`;
  const data = list ?? undefined; // The list may be loaded already, by the unread counts.
  return html`<section class="chat-list" aria-label=${t('chats.all')}>
    <${Loaded} load=${{ ...load, data }} lines=${6}>${() => (list.chats.length
      ? entries()
      : html`<${Empty} icon="chats" title=${t('chats.none')}>${t(isClient() ? 'chats.none_client' : 'chats.none_text')}<//>`)}<//>
  </section>`;
}

/** The list of chats, and the thread of the open one. */
export default function Chats({ id }) {
  usePeople();
  const { query } = useStore(route);
  const list = useStore(conversations);
  const load = useLoad(() => (conversations.get() ? undefined : firstLoad()));
  const listed = list?.chats.find((one) => one.id === id);
  const missing = Boolean(id && list && !listed); // It is on a later page, or the caller may only read it.
  const single = useLoad(() => (missing ? api.get(`/v1/chats/${id}`).catch(() => undefined) : undefined), [id, missing]);
  const chat = listed ?? (missing ? single.data : undefined);
  const openNew = (made) => {
    loadConversations().catch(toastError);
    go(`/chats/${made.id}`);
  };
  const customer = id && customerOf(chat);
  const isNew = query.get('new');
  const write = useAction(async () => openNew(await writeToBank()));
  useEffect(() => {
    if (isNew && isClient()) write.run(); // Customers write to the bank, whom they need not choose.
  }, [isNew]);
  return html`
    <${PageHead} title=${t(isClient() ? 'nav.messages' : 'nav.chats')}>
      ${isClient()
        ? html`<button disabled=${write.busy} onClick=${write.run}><${Icon} name="send" size=${16} />${t('chats.write_to_bank')}</button>`
        : html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('chats.new')}</button>`}
    <//>
    <div class=${`messenger${id ? ' open' : ''}${customer ? ' inbox' : ''}`}>
      <${ChatList} load=${load} current=${id} />
      ${id
        ? html`<${Thread} key=${id} id=${id} chat=${chat} />${customer && html`<${CustomerPanel} userId=${customer} />`}`
        : html`<section class="thread blank"><${Empty} icon="chats" title=${t('chats.choose')} /></section>`}
    </div>
    ${isNew && !isClient() && html`<${NewChat} close=${() => setQuery({ new: '' })} done=${openNew} />`}`;
}
