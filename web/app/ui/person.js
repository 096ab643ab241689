import { html } from '../lib.js';
import { t } from '../i18n.js';
import { chatLabel, isKnown, namedIn, nameOf, othersIn, shortened } from '../people.js';
import { myId } from '../access.js';

/**
 * Words that a user chose for somebody else or for a chat: in quotation marks, isolated from the text around them, and
 * announced as such. `by` is the key of the sentence that says whose words they are.
 */
export const Said = ({ text, by }) => html`<q class="said" title=${t(by)}><bdi>${text}</bdi><span class="sr"> (${t(by)})</span></q>`;

/** A user: what they sign in with, and beside it the name that somebody gave them, marked as such. */
export function Person({ id, said, by }) {
  const name = shortened(said);
  if (!name || id === myId()) return html`<span class="person">${nameOf(id)}</span>`;
  return html`<span class="person"><${Said} text=${name} by=${by} /> <span class="login">${nameOf(id)}</span></span>`;
}

/** A participant of a chat. */
export const Participant = ({ chat, id }) => html`<${Person} id=${id} said=${namedIn(chat, id)} by="people.said_chat" />`;

/** An assignee of a task. */
export const AssigneeName = ({ one }) => html`<${Person} id=${one.user_id} said=${one.name} by="people.said_task" />`;

/** A chat on its own screen: its title, else the names of the others, marked as the words of its creator; and who is in it. */
export function ChatName({ chat }) {
  const title = shortened(chat.metadata?.title);
  const others = othersIn(chat);
  if (title) return html`<${Said} text=${title} by="chats.said_title" />`;
  if (!others.length) return t('chats.alone');
  return others.map((id, i) => html`${i ? ', ' : ''}<${Participant} key=${id} chat=${chat} id=${id} />`);
}

/** The same as plain text, for a picture and for the name of a region: only what is known for certain. */
export const plainChatName = (chat) => chatLabel(chat) || othersIn(chat).filter(isKnown).map(nameOf).join(', ') || t('chats.one');
