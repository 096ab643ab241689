import { html, useEffect, useState } from '../lib.js';
import { api } from '../api.js';
import { may, myId } from '../access.js';
import { moment } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { countUnreadSoon, useNotifications } from '../live.js';
import { isKnown, nameOf, usePeople } from '../people.js';
import { go, route, setQuery } from '../router.js';
import { useStore } from '../store.js';
import { Avatar } from '../ui/data.js';
import { Dialog } from '../ui/dialog.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { ChatName, Participant, plainChatName } from '../ui/person.js';
import { UserPicker } from '../ui/picker.js';
import { Thread } from './thread.js';

/** Who said what is shown of a chat: oneself, or one of several others. */
function said(chat, message) {
  if (message.senderId === myId()) return `${t('chats.you')}: `;
  return chat.participants.length > 2 && message.type !== 'system' ? html`<${Participant} chat=${chat} id=${message.senderId} />: ` : '';
}

function Entry({ chat, current }) {
  const last = chat.lastMessage;
  return html`<li><a href=${`/chats/${chat.id}`} aria-current=${current ? 'page' : undefined} class=${chat.unreadCount ? 'unread' : ''}>
    <${Avatar} name=${plainChatName(chat)} />
    <span class="chat-text"><span class="chat-name"><${ChatName} chat=${chat} /></span><time class="fine" dateTime=${chat.updatedAt}>${moment(last?.createdAt ?? chat.updatedAt)}</time>
      <span class="chat-last">${last ? html`${said(chat, last)}${last.content}` : t('chats.no_messages')}</span>${chat.unreadCount ? html`<span class="count">${chat.unreadCount}<span class="sr"> ${t('nav.unread')}</span></span>` : null}</span>
  </a></li>`;
}

function NewChat({ close, done }) {
  const [people, setPeople] = useState([]);
  const form = useForm({ title: '', support: false }, async ({ title, support }) => {
    const metadata = { names: Object.fromEntries(people.filter(({ id }) => isKnown(id)).map((one) => [one.id, one.name])) };
    if (title.trim()) metadata.title = title.trim();
    if (support) metadata.support = true;
    done(await api.post('/v1/chats', { participants: people.map((one) => one.id), metadata }));
  });
  return html`<${Dialog} title=${t('chats.new')} close=${close}>
    <${Form} form=${form}>
      <${UserPicker} others several label=${t('chats.with')} pick=${(one) => setPeople((was) => (was.some(({ id }) => id === one.id) ? was : [...was, one]))} error=${form.errors.participants} />
      ${people.length > 0 && html`<ul class="chips" aria-label=${t('chats.participants')}>${people.map((one) => html`<li key=${one.id}><button type="button" class="chip" aria-label=${t('chats.remove', { name: one.name })} onClick=${() => setPeople(people.filter(({ id }) => id !== one.id))}>${one.name}<${Icon} name="close" size=${12} /></button></li>`)}</ul>`}
      ${people.length > 1 && html`<${Field} form=${form} name="title" label=${t('chats.title')} optional autocomplete="off" />`}
      ${may('chats', 'read_all') && html`<${Field} form=${form} name="support" type="checkbox" label=${t('chats.support')} />`}
      <div class="actions"><button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button><button type="submit" disabled=${form.busy || !people.length}>${t('chats.start')}</button></div>
    <//>
  <//>`;
}

/** The messenger: all conversations, and beside them the one that is open. */
export default function Chats({ id }) {
  usePeople();
  const { query } = useStore(route);
  const [parts, setParts] = useState(1); // of the list that are shown; one answer holds only so many chats
  const load = useLoad(async () => {
    let { data, next } = await api.linked('/v1/chats');
    for (let part = 1; next && part < parts; part++) {
      const more = await api.linked(next);
      data = [...data, ...more.data];
      next = more.next;
    }
    return Object.assign(data, { next });
  }, [parts]);
  useNotifications((item) => (!item || item.rec_type === 'chats') && load.reload());
  useEffect(() => countUnreadSoon(), [load.data]);
  const listed = load.data?.find((one) => one.id === id);
  const missing = Boolean(id && load.data && !listed); // It is further down the list, or the caller only reads it.
  const single = useLoad(() => (missing ? api.get(`/v1/chats/${id}`).catch(() => undefined) : undefined), [id, missing]);
  const chat = listed ?? (missing ? single.data : undefined);
  const create = html`<button onClick=${() => setQuery({ new: 1 })}><${Icon} name="plus" size=${16} />${t('chats.new')}</button>`;
  return html`
    <${PageHead} title=${t('nav.chats')}>${create}<//>
    <div class=${`messenger${id ? ' open' : ''}`}>
      <section class="chat-list" aria-label=${t('chats.all')}>
        <${Loaded} load=${load} lines=${6}>${(chats) => (chats.length
          ? html`<ul>${chats.map((one) => html`<${Entry} key=${one.id} chat=${one} current=${one.id === id} />`)}</ul>${chats.next && html`<button class="quiet small older" onClick=${() => setParts(parts + 1)}>${t('chats.more')}</button>`}`
          : html`<${Empty} icon="chats" title=${t('chats.none')}>${t('chats.none_text')}<//>`)}<//>
      </section>
      ${id ? html`<${Thread} key=${id} id=${id} chat=${chat} changed=${load.reload} />` : html`<section class="thread blank"><${Empty} icon="chats" title=${t('chats.choose')} /></section>`}
    </div>
    ${query.get('new') && html`<${NewChat} close=${() => setQuery({ new: '' })} done=${(made) => { load.reload(); go(`/chats/${made.id}`); }} />`}`;
}

