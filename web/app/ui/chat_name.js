import { html } from '../lib.js';
import { isClient } from '../access.js';
import { t } from '../i18n.js';
import { hasName, myId, nameOf, usePeople } from '../people.js';
import { People } from './person.js';

const MAX_TITLE = 80; // characters

/** The title that the creator gave a chat, shortened; empty for none. */
function titleOf({ metadata }) {
  const title = metadata?.title;
  return typeof title === 'string' ? [...title.trim()].slice(0, MAX_TITLE).join('') : '';
}

/** The participants of a chat other than the user. */
const othersIn = (chat) => chat.participants.filter((id) => id !== myId());

/** Whether the user has begun the chat to write to the bank. */
const isBank = (chat) => chat.type === 'support' && isClient();

/** A chat's title, in quotation marks and announced as its creator's words, or the names of the other participants. */
export function ChatName({ chat }) {
  usePeople();
  const title = titleOf(chat);
  const others = othersIn(chat);
  if (title) {
    const note = t('chats.title_by_creator');
    return html`<q class="quoted" title=${note}><bdi>${title}</bdi><span class="sr"> (${note})</span></q>`;
  }
  if (isBank(chat)) return t('chats.bank');
  return others.length ? html`<${People} ids=${others} />` : t('chats.alone');
}

/** The other participants as plain text. */
export const plainChatName = (chat) => (isBank(chat) ? t('chats.bank') : othersIn(chat).map(nameOf).join(', ') || t('chats.alone'));

/** The same, or empty unless the names of all participants are known. */
export const knownChatName = (chat) => (othersIn(chat).every(hasName) ? plainChatName(chat) : '');
