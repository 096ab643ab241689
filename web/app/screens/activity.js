import { html } from '../lib.js';
import { t, term } from '../i18n.js';
import { ago } from '../format.js';
import { conversations } from '../live.js';
import { chatLabel, usePeople } from '../people.js';
import { ownPath } from '../router.js';
import { useStore } from '../store.js';
import { Icon } from '../ui/icon.js';

const ICONS = {
  message_received: 'chats', customer_created: 'customers', customer_status_changed: 'roles', kyc_document_expiring: 'card',
  task_assigned: 'tasks', task_status_changed: 'tasks', password_changed: 'key', new_device_login: 'device',
};
const URGENT = new Set(['kyc_document_expiring', 'password_changed', 'new_device_login']);

/** The picture beside a notification: what it is about. */
export const EventIcon = ({ item }) => html`<span class=${`event${URGENT.has(item.event) ? ' warn' : ''}`} aria-hidden="true"><${Icon} name=${ICONS[item.event] ?? 'bell'} size=${16} /></span>`;

/** The chat that a notification is about, as far as it is known. */
function chatOf(item, chats) {
  const id = item.event === 'message_received' && /^\/chats\/([^/?]+)/.exec(ownPath(item.link_url) ?? '')?.[1];
  return id && chats?.find((one) => one.id === id);
}

/** What a notification says: {title, content}. Of a message it says more than the server can: in which chat it is. */
export function useWords() {
  usePeople();
  const chats = useStore(conversations);
  return (item, n = 1) => {
    const chat = chatOf(item, chats);
    const name = chat && chatLabel(chat);
    const kind = !name ? 'activity.unnamed' : chat?.participants.length > 2 ? 'activity.messages' : 'activity.direct';
    if (chat) return { title: t(kind, { n, chat: name }), content: n === 1 && chat.lastMessage?.createdAt <= item.created_at ? chat.lastMessage.content : '' };
    return { title: item.title || term('event', item.event), content: item.content };
  };
}

const BUNDLED = new Set(['message_received', 'new_device_login']);

/** Puts messages of one chat, and sign-ins, that came right after each other into one line: {item, n, unread}. */
export function bundle(items) {
  const lines = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last && BUNDLED.has(item.event) && last.item.event === item.event && last.item.link_url === item.link_url) {
      last.n += 1;
      last.unread ||= !item.read;
    } else lines.push({ item, n: 1, unread: !item.read });
  }
  return lines;
}

/** What happened, newest first; each line leads to where it happened. */
export function Activity({ items, most = 50 }) {
  const words = useWords();
  return html`<ul class="items activity" aria-live="polite">${bundle(items).slice(0, most).map(({ item, n, unread }) => {
    const path = ownPath(item.link_url);
    const { title, content } = words(item, n);
    return html`<li key=${item.id} class=${unread ? 'unread' : ''}>
      <${EventIcon} item=${item} />
      <div class="grow"><p>${path ? html`<a class="plain" href=${path}>${title}</a>` : html`<span>${title}</span>`}${unread && html`<span class="sr"> (${t('nav.unread')})</span>`}</p>
        ${content && html`<p class="fine clip">${content}</p>`}</div>
      <time class="fine" dateTime=${item.created_at}>${ago(item.created_at, 'short')}</time>
    </li>`;
  })}</ul>`;
}
