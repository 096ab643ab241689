import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { myId } from '../access.js';
import { clock, day, dayName } from '../format.js';
import { t } from '../i18n.js';
import { countUnreadSoon, useNotifications } from '../live.js';
import { usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { ownPath } from '../router.js';
import { Avatar } from '../ui/data.js';
import { ErrorBox, Skeleton } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { ChatName, Participant, plainChatName } from '../ui/person.js';

const PAGE = 50;
const MOST = 10_000; // The longest message the server takes.
const drafts = new Map(); // What was typed but not sent, by chat, as long as the page lives.

/** Newer knowledge about messages put into what is there, in the order of their ids, which is the order of time. */
function merge(have, more) {
  const byId = new Map(have.map((one) => [one.id, one]));
  for (const one of more) byId.set(one.id, one);
  return [...byId.values()].sort((a, b) => (a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id) ? -1 : 1));
}

function Message({ message, before, chat }) {
  const mine = message.senderId === myId();
  const participants = chat?.participants.length ?? 0;
  const newDay = !before || day(before.createdAt) !== day(message.createdAt);
  const first = newDay || before.senderId !== message.senderId || before.type === 'system';
  const readers = (message.readBy ?? []).filter((id) => id !== message.senderId).length;
  return html`
    ${newDay && html`<li class="day"><span>${dayName(message.createdAt)}</span></li>`}
    ${message.type === 'system'
      ? html`<li class="system"><span>${message.content}</span></li>`
      : html`<li class=${`message${mine ? ' mine' : ''}${first ? ' first' : ''}${message.failed ? ' failed' : ''}`}>
          ${first && !mine && participants > 2 && html`<span class="sender"><${Participant} chat=${chat} id=${message.senderId} /></span>`}
          <p>${message.content}</p>
          <span class="stamp"><time dateTime=${message.createdAt}>${clock(message.createdAt)}</time>${mine && html`<span>${message.pending ? t('chats.sending') : readers >= participants - 1 && participants > 1 ? t('chats.read') : readers ? t('chats.read_by', { n: readers }) : t('chats.sent')}</span>`}</span>
        </li>`}`;
}

/** One conversation, newest at the bottom, with the field to write in. */
export function Thread({ id, chat, changed }) {
  usePeople();
  usePrefs();
  const [messages, setMessages] = useState(null);
  const [older, setOlder] = useState(false);
  const [error, setError] = useState(null);
  const [text, setText] = useState(drafts.get(id) ?? '');
  const box = useRef();
  const atEnd = useRef(true);
  const field = useRef();
  const unsent = useRef(null); // the message that failed last: sent again under its key, it appears once

  async function refresh() {
    try {
      const { data: page, next } = await api.linked(`/v1/chats/${id}/messages`, { limit: PAGE });
      setMessages((was) => merge((was ?? []).filter((one) => !one.pending), page));
      setOlder((was) => was || Boolean(next));
      setError(null);
      if (document.visibilityState === 'visible') {
        await api.post(`/v1/chats/${id}/read`);
        countUnreadSoon();
        changed();
      }
    } catch (failed) {
      setError(failed);
    }
  }
  async function loadOlder() {
    const height = box.current.scrollHeight;
    const { data: page, next } = await api.linked(`/v1/chats/${id}/messages`, { limit: PAGE, before: messages[0].id });
    atEnd.current = false;
    setMessages((was) => merge(was, page));
    setOlder(Boolean(next));
    requestAnimationFrame(() => (box.current.scrollTop += box.current.scrollHeight - height));
  }
  useEffect(() => {
    refresh();
    const seen = () => document.visibilityState === 'visible' && refresh();
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, [id]);
  useNotifications((item) => (!item || ownPath(item.link_url) === `/chats/${id}`) && refresh());
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }); // After every drawing: a name that becomes known adds a line, too.

  function type(value) {
    setText(value);
    drafts.set(id, value);
  }
  async function sendMessage(event) {
    event?.preventDefault();
    const content = text.trim();
    if (!content) return;
    const key = unsent.current?.content === content ? unsent.current.key : idempotencyKey();
    const pending = { id: `~${key}`, senderId: myId(), content, type: 'text', createdAt: new Date().toISOString(), readBy: [], pending: true };
    atEnd.current = true;
    setMessages((was) => [...(was ?? []), pending]);
    type('');
    try {
      const sent = await api.post(`/v1/chats/${id}/messages`, { content, metadata: {} }, { headers: { 'Idempotency-Key': key } });
      setMessages((was) => merge(was.filter((one) => one.id !== pending.id), [sent]));
      setError(null);
      unsent.current = null;
      changed();
    } catch (failed) {
      unsent.current = { content, key };
      setMessages((was) => was.filter((one) => one.id !== pending.id));
      type(content);
      setError(failed);
    }
    field.current?.focus();
  }
  const who = chat && (chat.participants.length > 2 ? chat.participants.map((one, i) => html`${i ? ', ' : ''}${one === myId() ? t('chats.you') : html`<${Participant} key=${one} chat=${chat} id=${one} />`}`) : t(chat.metadata?.support ? 'chats.support_one' : 'chats.direct'));
  const onKeyDown = (event) => event.key === 'Enter' && !event.shiftKey && !event.isComposing && sendMessage(event);
  const onScroll = () => (atEnd.current = box.current.scrollHeight - box.current.scrollTop - box.current.clientHeight < 60);
  return html`<section class="thread" aria-label=${chat ? plainChatName(chat) : t('chats.one')}>
    <header><a class="icon-button to-list" href="/chats" aria-label=${t('chats.back')}><${Icon} name="left" /></a>${chat && html`<${Avatar} name=${plainChatName(chat)} />`}<div class="two-lines grow"><h2>${chat ? html`<${ChatName} chat=${chat} />` : '…'}</h2>${chat && html`<span>${who}</span>`}</div></header>
    <div class="messages" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label=${t('chats.messages')}>
      ${error && html`<${ErrorBox} error=${error} retry=${refresh} />`}
      ${messages === null && !error ? html`<${Skeleton} lines=${5} />` : null}
      ${messages && older && messages.length ? html`<button class="quiet small older" onClick=${() => loadOlder().catch(setError)}>${t('chats.older')}</button>` : null}
      ${messages && html`<ol>${messages.map((message, i) => html`<${Message} key=${message.id} message=${message} before=${messages[i - 1]} chat=${chat} />`)}</ol>`}
      ${messages?.length === 0 && html`<p class="none">${t('chats.first')}</p>`}
    </div>
    <form class="composer" onSubmit=${sendMessage}>
      <label class="sr" for="composer">${t('chats.write')}</label>
      <textarea id="composer" ref=${field} rows="1" maxlength=${MOST} placeholder=${t('chats.write')} value=${text} onInput=${(event) => type(event.target.value)} onKeyDown=${onKeyDown}></textarea>
      <button type="submit" aria-label=${t('chats.send')} disabled=${!text.trim()}><${Icon} name="send" /></button>
    </form>
  </section>`;
}
