import { html, useEffect } from '../lib.js';
import { isClient } from '../access.js';
import { useAddress } from '../address.js';
import { conversations, loadConversations, loadMoreConversations, writeToBank } from '../conversations.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { firstLoad } from '../live_updates.js';
import { myId, nameOf, usePeople } from '../people.js';
import { go } from '../router.js';
import { useStore } from '../store.js';
import { ChatName, plainChatName } from '../ui/chat_name.js';
import { Avatar, When } from '../ui/display.js';
import { Empty, Loaded, toastError, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { Table } from '../ui/table.js';
import { NewChat } from './new_chat.js';

/** The author of a chat's last message: the user, or one of several others; nothing in a direct chat. */
function authorOf(chat, message) {
  if (message.senderId === myId()) return `${t('chats.you')}: `;
  return chat.participants.length > 2 && message.type !== 'system' ? html`<bdi>${nameOf(message.senderId)}</bdi>: ` : '';
}

const Name = ({ chat }) => html`<span class=${`with-avatar${chat.unreadCount ? ' unread' : ''}`}>
  <${Avatar} name=${plainChatName(chat)} size="s" />
  <span class="clip"><${ChatName} chat=${chat} /></span>
  ${chat.unreadCount > 0 && html`<span class="count">${chat.unreadCount}<span class="sr"> ${t('nav.unread')}</span></span>`}
</span>`;

const Last = ({ chat }) => html`<span class=${`chat-last${chat.unreadCount ? ' unread' : ''}`}>${chat.lastMessage
  ? html`${authorOf(chat, chat.lastMessage)}${chat.lastMessage.content}`
  : t('chats.no_messages')}</span>`;

const columns = () => [
  { key: 'name', label: t('chats.with'), cell: (chat) => html`<${Name} chat=${chat} />` },
  { key: 'last', label: t('chats.last'), cell: (chat) => html`<${Last} chat=${chat} />` },
  { key: 'at', label: t('field.updated_at'), beside: true,
    cell: (chat) => html`<${When} at=${chat.lastMessage?.createdAt ?? chat.updatedAt} />` },
];

const List = ({ chats, more, beside }) => html`
  <${Table} caption=${t('chats.all')} rows=${chats} columns=${columns().filter((one, i) => !beside || i === 0 || one.beside)}
    link=${(chat) => `/chats/${chat.id}`} />
  ${more && html`<div class="pager">
    <button class="quiet small" onClick=${() => loadMoreConversations().catch(toastError)}>${t('chats.more')}</button>
  </div>`}`;

/** The chats of the user, those with the latest messages first. */
export default function Chats() {
  usePeople();
  const { query, set, beside } = useAddress();
  const list = useStore(conversations);
  const load = useLoad(() => (conversations.get() ? undefined : firstLoad()));
  const openNew = (made) => {
    loadConversations().catch(toastError);
    go(`/chats/${made.id}`);
  };
  const isNew = query.get('new');
  const write = useAction(async () => openNew(await writeToBank()));
  useEffect(() => {
    if (isNew && isClient()) write.run(); // Customers write to the bank, whom they need not choose.
  }, [isNew]);
  return html`
    <${PageHead} title=${t(isClient() ? 'nav.messages' : 'nav.chats')}>
      ${isClient()
        ? html`<button disabled=${write.busy} onClick=${write.run}><${Icon} name="send" size=${16} />${t('chats.write_to_bank')}</button>`
        : html`<button onClick=${() => set({ new: 1 })}><${Icon} name="plus" size=${16} />${t('chats.new')}</button>`}
    <//>
    <section class="card flush chats" aria-label=${t('chats.all')}>
      <${Loaded} load=${{ ...load, data: list ?? undefined }} lines=${6}>${(all) => (all.chats.length
        ? html`<${List} ...${all} beside=${beside} />`
        : html`<${Empty} icon="chats" title=${t('chats.none')}>${t(isClient() ? 'chats.none_client' : 'chats.none_text')}<//>`)}<//>
    </section>
    ${isNew && !isClient() && html`<${NewChat} close=${() => set({ new: '' })} done=${openNew} />`}`;
}
