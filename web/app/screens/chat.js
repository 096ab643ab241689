import { html } from '../lib.js';
import { isClient, may } from '../access.js';
import { api } from '../api.js';
import { conversations } from '../conversations.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { firstLoad } from '../live_updates.js';
import { hasName, isService, isStaff, myId, usePeople } from '../people.js';
import { useStore } from '../store.js';
import { loadStyle } from '../style.js';
import { ChatName, plainChatName } from '../ui/chat_name.js';
import { Avatar } from '../ui/display.js';
import { PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { WhoSees } from '../ui/who_sees.js';
import { CustomerPanel } from './inbox_customer.js';
import { Thread } from './thread.js';

await loadStyle('chats');

/** The participant of a chat who is a customer of the bank; undefined without one, and for callers who may not read customers. */
const customerOf = (chat) => (may('customers', 'read_all')
  ? chat?.participants.find((id) => id !== myId() && hasName(id) && !isStaff(id) && !isService(id))
  : undefined);

/** The participants of a group; the kind of any other chat. */
function Participants({ chat }) {
  if (chat.participants.length <= 2) return t(chat.type === 'support' ? 'chats.support_one' : 'chats.direct');
  return chat.participants.map((id, i) => html`${i > 0 && ', '}${id === myId() ? t('chats.you') : html`<${Person} key=${id} id=${id} />`}`);
}

/** One chat, with its customer beside it. */
export default function Chat({ id }) {
  usePeople();
  const list = useStore(conversations);
  useLoad(() => (conversations.get() ? undefined : firstLoad()));
  const listed = list?.chats.find((one) => one.id === id);
  const missing = Boolean(list && !listed); // It is on a later page, or the caller may only read it.
  const single = useLoad(() => (missing ? api.get(`/v1/chats/${id}`).catch(() => undefined) : undefined), [id, missing]);
  const chat = listed ?? (missing ? single.data : undefined);
  const customer = customerOf(chat);
  const name = chat ? plainChatName(chat) : t('chats.one');
  return html`
    <${PageHead} title=${chat ? html`<${ChatName} chat=${chat} />` : '…'} plainTitle=${name}
      back=${['/chats', t(isClient() ? 'nav.messages' : 'nav.chats')]}
      picture=${chat && html`<${Avatar} name=${name} />`} note=${chat && html`<${Participants} chat=${chat} />`}>
      ${chat && html`<${WhoSees} type="chats" id=${id} />`}
    <//>
    <div class="conversation">
      <${Thread} id=${id} chat=${chat} />
      ${customer && html`<${CustomerPanel} userId=${customer} />`}
    </div>`;
}
