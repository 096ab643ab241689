import { html } from '../lib.js';
import { conversations } from '../conversations.js';
import { t, term } from '../i18n.js';
import { ago } from '../format.js';
import { usePeople } from '../people.js';
import { consolePath } from '../router.js';
import { useStore } from '../store.js';
import { knownChatName } from '../ui/chat_name.js';
import { Icon } from '../ui/icon.js';

const ICONS = {
  message_received: 'chats', customer_created: 'customers', customer_status_changed: 'roles', kyc_document_expiring: 'card',
  kyc_decision_pending: 'roles', kyc_decision_closed: 'roles', kyc_case_escalated: 'roles', screening_escalated: 'roles',
  customer_notice: 'home',
  task_assigned: 'tasks', task_status_changed: 'tasks', task_due: 'clock', password_changed: 'key', new_device_login: 'device',
  credential_added: 'key', credential_removed: 'key', factor_changed: 'key', service_token_expiring: 'key',
  access_expiring: 'key', webhook_paused: 'deliveries',
  webhook_disabled: 'deliveries',
};
const URGENT = new Set(['kyc_document_expiring', 'kyc_case_escalated', 'password_changed', 'new_device_login', 'credential_added',
  'credential_removed', 'factor_changed']);

/** The icon of a notification's event. */
export const EventIcon = ({ item }) => html`
  <span class=${`event${URGENT.has(item.event) ? ' warn' : ''}`} aria-hidden="true">
    <${Icon} name=${ICONS[item.event] ?? 'bell'} size=${16} />
  </span>`;

/** The chat that a notification is about, when it is loaded. */
function chatOf(item, loaded) {
  const id = item.event === 'message_received' && /^\/chats\/([^/?]+)/.exec(consolePath(item.link_url) ?? '')?.[1];
  return id && loaded?.chats.find((one) => one.id === id);
}

function chatText(chat, item, n) {
  const name = knownChatName(chat);
  const key = !name ? 'activity.unnamed' : chat.participants.length > 2 ? 'activity.messages' : 'activity.direct';
  const isLatest = n === 1 && chat.lastMessage?.createdAt <= item.created_at;
  return { title: t(key, { n, chat: name }), content: isLatest ? chat.lastMessage.content : '' };
}

/** Returns a function that returns the text of a notification, {title, content}; for a message it names the chat. */
export function useNotificationText() {
  usePeople();
  const loaded = useStore(conversations);
  return (item, n = 1) => {
    const chat = chatOf(item, loaded);
    return chat ? chatText(chat, item, n) : { title: item.title || term('event', item.event), content: item.content };
  };
}

const GROUPED = new Set(['message_received', 'new_device_login']);

/** Groups consecutive messages of one chat, and consecutive sign-ins, into one line: {item, n, unread}. */
export function group(items) {
  const lines = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last && GROUPED.has(item.event) && last.item.event === item.event && last.item.link_url === item.link_url) {
      last.n += 1;
      last.unread ||= !item.read;
    } else lines.push({ item, n: 1, unread: !item.read });
  }
  return lines;
}

/** Notifications in short, newest first; each line links to its subject. */
export function Activity({ items, most = 50 }) {
  const textOf = useNotificationText();
  return html`<ul class="items activity" aria-live="polite">${group(items).slice(0, most).map(({ item, n, unread }) => {
    const path = consolePath(item.link_url);
    const { title, content } = textOf(item, n);
    return html`<li key=${item.id} class=${unread ? 'unread' : ''}>
      <${EventIcon} item=${item} />
      <div class="grow">
        <p>
          ${path ? html`<a class="plain" href=${path}>${title}</a>` : html`<span>${title}</span>`}
          ${unread && html`<span class="sr"> (${t('nav.unread')})</span>`}
        </p>
        ${content && html`<p class="fine clip">${content}</p>`}
      </div>
      <time class="fine" dateTime=${item.created_at}>${ago(item.created_at, 'short')}</time>
    </li>`;
  })}</ul>`;
}
