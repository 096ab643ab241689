import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { Dialog } from '../ui/dialog.js';
import { toast } from '../ui/feedback.js';
import { Field, Form, useForm } from '../ui/form.js';
import { UserPicker } from '../ui/picker.js';
import { ChosenUsers } from './chosen_users.js';

/**
 * Sends a notification about a customer to users.
 * @param {{customer: any, users: {id: string, name: string}[], close: () => void}} props users: who is chosen at first
 */
export function NotifyDialog({ customer, users: chosen, close }) {
  const [users, setUsers] = useState(chosen);
  const form = useForm({ text: '' }, async ({ text }) => {
    const body = { text, user_ids: users.map((one) => one.id) };
    await api.post(`/v1/customers/${customer.id}/notify`, body);
    toast(t('work.notified'));
    close();
  });
  const add = (user) => setUsers((was) => (was.some(({ id }) => id === user.id) ? was : [...was, user]));
  const remove = (id) => setUsers((was) => was.filter((one) => one.id !== id));
  return html`<${Dialog} title=${t('work.notify')} close=${close}>
    <${Form} form=${form}>
      <${UserPicker} others several label=${t('work.to')} pick=${add} error=${form.errors.user_ids} />
      ${users.length > 0 && html`<${ChosenUsers} label=${t('work.to')} users=${users} remove=${remove} />`}
      <${Field} form=${form} name="text" rows=${4} maxlength="500" label=${t('work.text')} hint=${t('work.text_hint')} />
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
        <button type="submit" disabled=${form.busy || !users.length}>${t('work.send')}</button>
      </div>
    <//>
  <//>`;
}
