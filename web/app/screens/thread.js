import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { addMessage, messageOf, setOpenChat } from '../conversations.js';
import { clock, day, dayName } from '../format.js';
import { t } from '../i18n.js';
import { newestOnly, oneByOne } from '../in_order.js';
import { markChatRead, useNotifications } from '../live_updates.js';
import { myId, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { consolePath } from '../router.js';
import { SignedOut } from '../session.js';
import { drafts } from '../unsaved.js';
import { plainChatName } from '../ui/chat_name.js';
import { ErrorBox, Skeleton } from '../ui/feedback.js';
import { AttachButton, FileList } from '../ui/files.js';
import { Icon } from '../ui/icon.js';
import { Person } from '../ui/person.js';

const PAGE = 50;
const MAX_LENGTH = 10_000; // of a message; the server's limit
/** The draft of a message, by chat. It stays when the user reads another chat, or reloads the page. */
const draftOf = (id) => `chat ${id}`;

const isVisible = () => document.visibilityState === 'visible';

/** Merges messages by id and sorts them by time, then by id. */
function merge(old, newer) {
  const byId = new Map(old.map((one) => [one.id, one]));
  for (const one of newer) byId.set(one.id, one);
  return [...byId.values()].sort((a, b) => (a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id) ? -1 : 1));
}

/** Marks the user's messages as read by the author of a new message, who has seen the thread. */
const readByAuthor = (messages, author) => messages.map((one) => (one.senderId === author || one.readBy?.includes(author)
  ? one
  : { ...one, readBy: [...(one.readBy ?? []), author] }));

/** How far the user's own message got. */
function deliveryState(message, participants) {
  if (message.pending) return t('chats.sending');
  const readers = (message.readBy ?? []).filter((id) => id !== message.senderId).length;
  if (!readers) return t('chats.sent');
  return readers >= participants - 1 ? t('chats.read') : t('chats.read_by', { n: readers });
}

const attached = new Map(); // files to upload to a message that was just sent, by its id, until its bubble takes them

function takeAttached(id) {
  const files = attached.get(id);
  attached.delete(id);
  return files;
}

function Bubble({ message, first, participants }) {
  const mine = message.senderId === myId();
  return html`<li class=${`message${mine ? ' mine' : ''}${first ? ' first' : ''}`}>
    ${first && !mine && participants > 2 && html`<span class="sender"><${Person} id=${message.senderId} /></span>`}
    <p>${message.content}</p>
    ${!message.pending && html`<${FileList} of=${{ type: 'chat_messages', parent: message.chatId, record: message.id }} noUpload
      readOnly=${!mine} start=${() => takeAttached(message.id)} />`}
    <span class="stamp">
      <time dateTime=${message.createdAt}>${clock(message.createdAt)}</time>
      ${mine && html`<span>${deliveryState(message, participants)}</span>`}
    </span>
  </li>`;
}

/** A message, below the day if it is the first one of it. */
export function Message({ message, before, participants }) {
  const newDay = !before || day(before.createdAt) !== day(message.createdAt);
  const first = newDay || before.senderId !== message.senderId || before.type === 'system';
  return html`
    ${newDay && html`<li class="day"><span>${dayName(message.createdAt)}</span></li>`}
    ${message.type === 'system'
      ? html`<li class="system"><span>${message.content}</span></li>`
      : html`<${Bubble} message=${message} first=${first} participants=${participants} />`}`;
}

/** The messages of a chat: {messages, older, error, …}, kept current by the stream. */
function useMessages(id) {
  const [messages, setMessages] = useState(null);
  const [older, setOlder] = useState(false);
  const [error, setError] = useState(null);
  const load = (before) => api.page(`/v1/chats/${id}/messages`, { limit: PAGE, before });
  const begin = useMemo(newestOnly, []);
  const gone = useRef(false);

  async function refresh() {
    const isNewest = begin();
    try {
      const { data, next } = await load();
      if (!isNewest()) return;
      setMessages((was) => merge((was ?? []).filter((one) => !one.pending), data));
      setOlder((was) => was || Boolean(next));
      setError(null);
      if (isVisible() && !gone.current) await markChatRead(id);
    } catch (failed) {
      if (isNewest()) setError(failed);
    }
  }
  async function loadOlder() {
    const { data, next } = await load(messages[0].id);
    setMessages((was) => merge(was, data));
    setOlder(Boolean(next));
  }
  /** Appends a message from the stream. The only request is the one that marks it as read. */
  function receive(message) {
    setMessages((was) => was && merge(readByAuthor(was, message.senderId), [message]));
    if (isVisible()) markChatRead(id).catch(setError);
  }
  useEffect(() => {
    setOpenChat(id);
    refresh();
    const onVisible = () => isVisible() && refresh();
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      gone.current = true;
      setOpenChat('');
      document.removeEventListener('visibilitychange', onVisible);
    };
  }, [id]);
  useNotifications((item) => {
    if (!item) return refresh();
    const message = messageOf(item);
    const isHere = message ? message.chatId === id : consolePath(item.link_url) === `/chats/${id}`;
    if (!isHere) return undefined;
    return message && !message.truncated ? receive(message) : refresh();
  });
  return { messages, setMessages, older, loadOlder, error, setError, refresh };
}

/**
 * Sends messages in their order: {text, files, type, attach, detach, send}. Files wait for Send. A message that failed goes back into the
 * field, before what was typed since.
 */
function useComposer(id, { setMessages, setError }, beforeSend) {
  const [text, setText] = useState(drafts.read(draftOf(id)) ?? '');
  const [files, setFiles] = useState([]);
  const inTurn = useMemo(oneByOne, []);
  const unsent = useRef(null); // {content, key} of a failed message: a retry with the same key creates it only once

  function type(value) {
    setText(value);
    if (value) drafts.write(draftOf(id), value);
    else drafts.remove(draftOf(id));
  }
  const attach = (chosen) => setFiles((was) => [...was, ...chosen]);
  const detach = (file) => setFiles((was) => was.filter((one) => one !== file));
  async function send() {
    const content = text.trim() || files.map((file) => file.name).join(', ').slice(0, MAX_LENGTH);
    if (!content) return;
    const key = unsent.current?.content === content ? unsent.current.key : idempotencyKey();
    const pending = {
      id: `~${key}`, senderId: myId(), content, type: 'text', createdAt: new Date().toISOString(), readBy: [], pending: true,
    };
    const withoutPending = (was) => was.filter((one) => one.id !== pending.id);
    beforeSend();
    setMessages((was) => [...(was ?? []), pending]);
    type('');
    setFiles([]);
    try {
      const body = { content, metadata: {} };
      const sent = await inTurn(() => api.post(`/v1/chats/${id}/messages`, body, { headers: { 'Idempotency-Key': key } }));
      if (files.length) attached.set(sent.id, files);
      setMessages((was) => merge(withoutPending(was), [sent]));
      setError(null);
      unsent.current = null;
      addMessage({ ...sent, chatId: id });
    } catch (failed) {
      if (failed instanceof SignedOut) return; // Nothing of the message stays for the next user.
      unsent.current = { content, key };
      setMessages(withoutPending);
      type([content, drafts.read(draftOf(id))].filter(Boolean).join('\n'));
      attach(files);
      setError(failed);
    }
  }
  return { text, files, type, attach, detach, send };
}

/** The files that wait for Send. */
const WaitingFiles = ({ files, detach }) => files.length > 0 && html`<ul class="waiting-files" aria-label=${t('files.waiting')}>
  ${files.map((file) => html`<li key=${file.name + file.lastModified}>
    <${Icon} name="audit" size=${14} /><span class="clip">${file.name}</span>
    <button type="button" class="bare" aria-label=${t('files.take_out', { name: file.name })} onClick=${() => detach(file)}>
      <${Icon} name="close" size=${14} />
    </button>
  </li>`)}
</ul>`;

/** One chat, newest message at the bottom, with the field for a new message. */
export function Thread({ id, chat }) {
  usePeople();
  usePreferences();
  const thread = useMessages(id);
  const { messages, error } = thread;
  const box = useRef();
  const field = useRef();
  const atEnd = useRef(true); // whether the newest message is in view
  const composer = useComposer(id, thread, () => (atEnd.current = true));
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }); // after every rendering, because a name that becomes known may add a line

  async function showOlder() {
    const height = box.current.scrollHeight;
    atEnd.current = false;
    await thread.loadOlder();
    requestAnimationFrame(() => (box.current.scrollTop += box.current.scrollHeight - height)); // Keeps the messages in view.
  }
  async function submit(event) {
    event.preventDefault();
    await composer.send();
    field.current?.focus();
  }
  const onKeyDown = (event) => event.key === 'Enter' && !event.shiftKey && !event.isComposing && submit(event);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 60;
  };
  const participants = chat?.participants.length ?? 0;
  const more = messages?.length > 0 && thread.older;
  return html`<section class="thread" aria-label=${chat ? plainChatName(chat) : t('chats.one')}>
    <div class="messages" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label=${t('chats.messages')}>
      ${error && html`<${ErrorBox} error=${error} retry=${thread.refresh} />`}
      ${messages === null && !error && html`<${Skeleton} lines=${5} />`}
      ${more && html`<button class="quiet small older" onClick=${() => showOlder().catch(thread.setError)}>${t('chats.older')}</button>`}
      ${messages && html`<ol>${messages.map((message, i) => html`
        <${Message} key=${message.id} message=${message} before=${messages[i - 1]} participants=${participants} />`)}</ol>`}
      ${messages?.length === 0 && html`<p class="none">${t('chats.first')}</p>`}
    </div>
    <form class="composer" onSubmit=${submit}>
      <${WaitingFiles} files=${composer.files} detach=${composer.detach} />
      <label class="sr" for="composer">${t('chats.write')}</label>
      <textarea id="composer" ref=${field} rows="1" maxlength=${MAX_LENGTH} placeholder=${t('chats.write')} value=${composer.text}
        onInput=${(event) => composer.type(event.target.value)} onKeyDown=${onKeyDown}></textarea>
      <${AttachButton} label=${t('files.attach')} take=${composer.attach} />
      <button type="submit" aria-label=${t('chats.send')} disabled=${!composer.text.trim() && !composer.files.length}>
        <${Icon} name="send" />
      </button>
    </form>
  </section>`;
}
