import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { t } from '../i18n.js';
import { Dialog } from '../ui/dialog.js';
import { Field, Form, useForm } from '../ui/form.js';
import { UserPicker } from '../ui/picker.js';
import { ChosenUsers } from './chosen_users.js';

/**
 * Starts a chat.
 * @param {{users?: {id: string, name: string}[], title?: string, close: () => void, done: (chat: any) => void}} props
 *   users: the participants that are chosen already; title: the name of the chat, if it will have one
 */
export function NewChat({ users: chosen = [], title: name = '', close, done }) {
  const [users, setUsers] = useState(chosen);
  const form = useForm({ title: name, support: false }, async ({ title, support }) => {
    const metadata = { ...(users.length > 1 && title.trim() && { title: title.trim() }), ...(support && { support: true }) };
    done(await api.post('/v1/chats', { participants: users.map((one) => one.id), metadata }));
  });
  const add = (user) => setUsers((was) => (was.some(({ id }) => id === user.id) ? was : [...was, user]));
  const remove = (id) => setUsers((was) => was.filter((one) => one.id !== id));
  return html`<${Dialog} title=${t('chats.new')} close=${close}>
    <${Form} form=${form}>
      <${UserPicker} others several label=${t('chats.with')} pick=${add} error=${form.errors.participants} />
      ${users.length > 0 && html`<${ChosenUsers} users=${users} remove=${remove} />`}
      ${users.length > 1 && html`<${Field} form=${form} name="title" label=${t('chats.title')} optional autocomplete="off" />`}
      ${may('chats', 'read_all') && html`<${Field} form=${form} name="support" type="checkbox" label=${t('chats.support')} />`}
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
        <button type="submit" disabled=${form.busy || !users.length}>${t('chats.start')}</button>
      </div>
    <//>
  <//>`;
}
