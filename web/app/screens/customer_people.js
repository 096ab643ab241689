import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, usePeople } from '../people.js';
import { go } from '../router.js';
import { Avatar, Badge } from '../ui/display.js';
import { Dialog } from '../ui/dialog.js';
import { Loaded, toast } from '../ui/feedback.js';
import { Actions, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { UserPicker } from '../ui/picker.js';
import { NewChat } from './new_chat.js';
import { NotifyDialog } from './notify_form.js';
import { PersonaDialog, personaName } from './persona_form.js';

const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

/** Loads the personas with the name and the birthday of a customer, each with the links of its users. */
async function loadPeople(customer) {
  if (!may('personas', 'read_all') || !customer.date_of_birth) return [];
  const { data } = await api.get('/v1/personas', {
    limit: 5, 'search.first_name': quoted(customer.first_name), 'search.last_name': quoted(customer.last_name),
    'search.date_of_birth': customer.date_of_birth, 'search.active': true,
  });
  return Promise.all(data.map(async (persona) => ({
    persona, links: (await api.get(`/v1/personas/${persona.id}/users`, { limit: 100 })).data,
  })));
}

/** The personas and users of a customer: {people, users, ...load}. */
export function useCustomerPeople(customer) {
  usePeople();
  const identity = [customer?.first_name, customer?.last_name, customer?.date_of_birth].join('\n');
  const load = useLoad(() => (customer && !customer.erased_at ? loadPeople(customer) : []), [customer?.id, identity]);
  const ids = (load.data ?? []).flatMap(({ links }) => links.filter((link) => link.status === 'active').map((link) => link.user_id));
  return { ...load, users: [...new Set(ids)].map((id) => ({ id, name: nameOf(id) })) };
}

function LinkUserDialog({ persona, close, done }) {
  const form = useForm({ user_id: '' }, async (values) => done(await api.post(`/v1/personas/${persona.id}/users`, values)));
  return html`<${Dialog} title=${t('work.link_user')} close=${close}>
    <${Form} form=${form}>
      <p>${personaName(persona)}</p>
      <${UserPicker} label=${t('tasks.assignee')} pick=${({ id }) => form.set('user_id', id)} error=${form.errors.user_id} />
      <${Actions} form=${form} label=${t('work.link_user')} cancel=${close} />
    <//>
  <//>`;
}

function PersonaEntry({ persona, links, link }) {
  const name = personaName(persona);
  return html`<li>
    <${Avatar} name=${name} size="s" />
    <div class="grow two-lines">
      <a class="plain" href=${`/personas/${persona.id}`}>${name}</a>
      ${links.length
        ? html`<span>${links.map((one, i) => html`${i > 0 && ', '}<${Person} key=${one.id} id=${one.user_id} />${
            one.status === 'pending' && html` <${Badge} value=${t('personas.pending')} tone="warn" />`}`)}</span>`
        : html`<span>${t('work.no_user')}</span>`}
    </div>
    ${may('personas', 'update') && html`<button class="quiet small" onClick=${() => link(persona)}>${t('work.link_user')}</button>`}
  </li>`;
}

/** The persona of a customer and its users, with what is missing of both. */
export function CustomerPeople({ customer, people }) {
  const [dialog, setDialog] = useState(null); // {persona} or {create}
  if (!may('personas', 'read_all') || customer.type === 'business' || customer.erased_at) return null;
  const close = () => setDialog(null);
  const done = () => {
    close();
    people.reload();
    toast(t('saved'));
  };
  const { first_name, last_name, date_of_birth, nationality } = customer;
  const identity = { first_name, last_name, date_of_birth, nationality };
  const create = may('personas', 'create') && html`<button class="quiet small" onClick=${() => setDialog({ create: true })}>
    <${Icon} name="plus" size=${14} />${t('work.create_persona')}
  </button>`;
  return html`<${Card} title=${t('work.people')} aside=${people.data?.length === 0 && create}>
    <${Loaded} load=${people} lines=${2}>${(rows) => (rows.length
      ? html`<ul class="items">${rows.map(({ persona, links }) => html`
          <${PersonaEntry} key=${persona.id} persona=${persona} links=${links} link=${(one) => setDialog({ persona: one })} />`)}</ul>`
      : html`<p class="fine">${customer.date_of_birth ? t('work.no_persona') : t('work.no_birthday')}</p>`)}<//>
    ${dialog?.persona && html`<${LinkUserDialog} persona=${dialog.persona} close=${close} done=${done} />`}
    ${dialog?.create && html`<${PersonaDialog} initial=${identity} close=${close} done=${done} />`}
  <//>`;
}

/** The buttons that reach a customer: a chat with their users, and a notification to them. */
export function ReachCustomer({ customer, name, users }) {
  const [dialog, setDialog] = useState('');
  const close = () => setDialog('');
  return html`
    ${may('chats', 'create') && html`<button class="quiet" onClick=${() => setDialog('chat')}>
      <${Icon} name="chats" size=${16} />${t('work.chat')}
    </button>`}
    ${may('customers', 'update') && html`<button class="quiet" onClick=${() => setDialog('notify')}>
      <${Icon} name="bell" size=${16} />${t('work.notify')}
    </button>`}
    ${dialog === 'chat' && html`<${NewChat} users=${users} title=${name} close=${close} done=${(chat) => go(`/chats/${chat.id}`)} />`}
    ${dialog === 'notify' && html`<${NotifyDialog} customer=${customer} users=${users} close=${close} />`}`;
}
