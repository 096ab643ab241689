import { html } from '../lib.js';
import { api } from '../api.js';
import { CALL, may, mayCall, useCaller } from '../access.js';
import { conversations } from '../conversations.js';
import { fullName } from '../customers.js';
import { ago, longDay, money } from '../format.js';
import { greeting } from '../greeting.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications, useUnread } from '../live_updates.js';
import { myId, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { useStore } from '../store.js';
import { ChatName, plainChatName } from '../ui/chat_name.js';
import { Avatar } from '../ui/display.js';
import { Empty, Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Activity } from './activity.js';
import { missingPhotos, Needs, needsOf, Standing, useOwnRecords } from './own_records.js';
import { RecordStream } from './record_stream.js';
import { DueOn, OPEN } from './task_due.js';

const SHOWN = 5; // rows of a card

const More = ({ href, text }) => html`<a class="more" href=${href}>${text}<${Icon} name="right" size=${14} /></a>`;

function Record({ record, several }) {
  const needs = needsOf(record);
  return html`<div class="stack">
    ${several && html`<h3>${fullName(record.customer)}</h3>`}
    <${Standing} kyc=${record.kyc} />
    ${record.kyc.kyc_status !== 'verified' && missingPhotos(record).length > 0 && html`
      <p><a class="button small" href="/me/documents">${t('home.add_photo')}</a></p>`}
    ${needs.length > 0 && html`<${Needs} rows=${needs} action=${() => html`
      <a class="button small" href="/me/documents">${t('home.add_document')}</a>`} />`}
  </div>`;
}

/** The requirements of the bank that the user must meet. */
function BankNeeds({ load }) {
  const begin = may('customers', 'create') && html`<a class="button" href="/me/data?new=1">${t('home.begin')}</a>`;
  return html`<${Card} title=${t('home.needs')} aside=${html`<${More} href="/me/documents" text=${t('nav.needs')} />`}>
    <${Loaded} load=${load} lines=${3}>${(records) => (records.length
      ? records.map((record) => html`<${Record} key=${record.customer.id} record=${record} several=${records.length > 1} />`)
      : html`<${Empty} icon="card" title=${t('home.no_record')} action=${begin}>${t('home.no_record_text')}<//>`)}<//>
  <//>`;
}

/** The tasks of the user. Nothing is shown when there are none. */
function ToDo() {
  const load = useLoad(() => api.get('/v1/tasks', { limit: SHOWN, sort: '-is_urgent,due', 'search.status': OPEN.join(',') }));
  useNotifications((item) => (!item || item.rec_type === 'tasks') && load.reload());
  if (!load.data?.data.length) return null;
  return html`<${Card} title=${t('home.to_do')}><ul class="items">${load.data.data.map((task) => html`<li key=${task.id}>
    <a class="plain grow" href=${`/customers/${task.customer_id}/tasks/${task.id}`}>${task.title}</a><${DueOn} task=${task} />
  </li>`)}</ul><//>`;
}

/** The last message of a chat, with its author if it is the user. */
function lastText({ lastMessage: last }) {
  if (!last) return '';
  return last.senderId === myId() ? t('home.you_wrote', { text: last.content }) : last.content;
}

function Messages() {
  usePeople();
  const { chats: unread } = useUnread();
  const list = useStore(conversations);
  const chats = list?.chats.slice(0, SHOWN) ?? [];
  const title = unread ? t('home.messages_unread', { n: unread }) : t('nav.messages');
  return html`<${Card} title=${title} aside=${html`<${More} href="/chats" text=${t('home.all_messages')} />`}>
    ${chats.length
      ? html`<ul class="items">${chats.map((chat) => html`<li key=${chat.id}>
          <${Avatar} name=${plainChatName(chat)} size="s" />
          <div class="grow two-lines">
            <a class="plain" href=${`/chats/${chat.id}`}><${ChatName} chat=${chat} /></a>
            <span class="clip">${lastText(chat)}</span>
          </div>
          ${chat.unreadCount > 0 && html`<span class="count">${chat.unreadCount}<span class="sr"> ${t('nav.unread')}</span></span>`}
        </li>`)}</ul>`
      : html`<${Empty} icon="chats" title=${t('home.no_messages')}>${t('home.no_messages_text')}<//>`}
    <p><a class="button quiet" href="/chats?new=1"><${Icon} name="send" size=${16} />${t('chats.write_to_bank')}</a></p>
  <//>`;
}

function News() {
  const { me } = useCaller();
  const load = useLoad(() => api.get('/v1/notifications', { limit: 25, 'search.user_id': me.id, sort: '-created_at' }));
  useNotifications(() => load.reload());
  return html`<${Card} title=${t('home.news')} aside=${html`<${More} href="/notifications" text=${t('home.all_news')} />`}>
    <${Loaded} load=${load}>${({ data }) => (data.length
      ? html`<${Activity} items=${data} most=${SHOWN} />`
      : html`<${Empty} icon="bell" title=${t('home.no_news')}>${t('home.no_news_text')}<//>`)}<//>
  <//>`;
}

function Bills() {
  const load = useLoad(() => api.get('/v1/invoices/bills', { limit: 3 }));
  return html`<${Card} title=${t('nav.bills')} aside=${html`<${More} href="/invoices" text=${t('home.read_bill')} />`}>
    <${Loaded} load=${load} lines=${2}>${({ data }) => (data.length
      ? html`<ul class="items">${data.map((bill) => html`<li key=${bill.id}>
          <span class="grow two-lines"><span>${bill.qr_info.creditor.name}</span><span>${ago(bill.read_at)}</span></span>
          <span class="num">${bill.qr_info.amount === null ? '' : money(bill.qr_info.amount, bill.qr_info.currency)}</span>
        </li>`)}</ul>`
      : html`<p class="fine">${t('home.no_bills')}</p>`)}<//>
  <//>`;
}

/** The first screen of a customer: what the bank needs, messages, news and bills. */
export default function Home() {
  usePreferences();
  const records = useOwnRecords();
  const { me } = useCaller();
  const record = records.data?.[0];
  return html`
    <${PageHead} title=${greeting(me.display_name)} note=${longDay(new Date())} />
    <div class="grid-main">
      <div class="stack"><${BankNeeds} load=${records} /><${ToDo} /><${Messages} /></div>
      <div class="stack">${record
        ? html`<${RecordStream} customer=${record.customer} users=${[me.id]} />`
        : mayCall(CALL.notifications) && html`<${News} />`}<${Bills} /></div>
    </div>`;
}
