import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { conversations, loadConversations, loadMoreConversations } from '../conversations.js';
import { shortTime } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { myId, nameOf, usePeople } from '../people.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { ChatName, plainChatName } from '../ui/chat_name.js';
import { Avatar } from '../ui/display.js';
import { Dialog } from '../ui/dialog.js';
import { Empty, Loaded, toastError } from '../ui/feedback.js';
import { Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { UserPicker } from '../ui/picker.js';
import { Thread } from './thread.js';

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

/** The users chosen for a new chat; a click removes one. */
const Chosen = ({ users, remove }) => html`<ul class="chips" aria-label=${t('chats.participants')}>
  ${users.map((one) => html`<li key=${one.id}>
    <button type="button" class="chip" aria-label=${t('chats.remove', { name: one.name })} onClick=${() => remove(one.id)}>
      <bdi class="person-name">${one.name}</bdi><${Icon} name="close" size=${12} />
    </button>
  </li>`)}
</ul>`;

function NewChat({ close, done }) {
  const [users, setUsers] = useState([]);
  const form = useForm({ title: '', support: false }, async ({ title, support }) => {
    const metadata = { ...(title.trim() && { title: title.trim() }), ...(support && { support: true }) };
    done(await api.post('/v1/chats', { participants: users.map((one) => one.id), metadata }));
  });
  const add = (user) => setUsers((was) => (was.some(({ id }) => id === user.id) ? was : [...was, user]));
  const remove = (id) => setUsers((was) => was.filter((one) => one.id !== id));
  return html`<${Dialog} title=${t('chats.new')} close=${close}>
    <${Form} form=${form}>
      <${UserPicker} others several label=${t('chats.with')} pick=${add} error=${form.errors.participants} />
      ${users.length > 0 && html`<${Chosen} users=${users} remove=${remove} />`}
      ${users.length > 1 && html`<${Field} form=${form} name="title" label=${t('chats.title')} optional autocomplete="off" />`}
      ${may('chats', 'read_all') && html`<${Field} form=${form} name="support" type="checkbox" label=${t('chats.support')} />`}
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
        <button type="submit" disabled=${form.busy || !users.length}>${t('chats.start')}</button>
      </div>
    <//>
  <//>`;
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
      : html`<${Empty} icon="chats" title=${t('chats.none')}>${t('chats.none_text')}<//>`)}<//>
  </section>`;
}

/** The list of chats, and the thread of the open one. */
export default function Chats({ id }) {
  usePeople();
  const { query } = useStore(route);
  const list = useStore(conversations);
  const load = useLoad(loadConversations);
  useNotifications((item) => !item && load.reload());
  const listed = list?.chats.find((one) => one.id === id);
  const missing = Boolean(id && list && !listed); // It is on a later page, or the caller may only read it.
  const single = useLoad(() => (missing ? api.get(`/v1/chats/${id}`).catch(() => undefined) : undefined), [id, missing]);
  const chat = listed ?? (missing ? single.data : undefined);
  const openNew = (made) => {
    load.reload();
    go(`/chats/${made.id}`);
  };
  return html`
    <${PageHead} title=${t('nav.chats')}>
      <button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('chats.new')}</button>
    <//>
    <div class=${`messenger${id ? ' open' : ''}`}>
      <${ChatList} load=${load} current=${id} />
      ${id
        ? html`<${Thread} key=${id} id=${id} chat=${chat} />`
        : html`<section class="thread blank"><${Empty} icon="chats" title=${t('chats.choose')} /></section>`}
    </div>
    ${query.get('new') && html`<${NewChat} close=${() => setQuery({ new: '' })} done=${openNew} />`}`;
}
