import { html } from '../lib.js';
import { api, ApiError } from '../api.js';
import { caller } from '../access.js';
import { t } from '../i18n.js';
import { changeDisplayName, myId } from '../people.js';
import { toast } from '../ui/feedback.js';
import { Field, Form, useForm } from '../ui/form.js';
import { Card } from '../ui/page.js';

const MAX_NAME = 100; // characters; the server's limit

/** The field for a display name. */
export const DisplayNameField = ({ form, ...rest }) => html`<${Field} form=${form} name="display_name" label=${t('field.display_name')}
  hint=${t('people.display_name_hint')} maxlength=${MAX_NAME} autocomplete="name" optional ...${rest} />`;

/** Awaits a request with a display name; the error that the name is reserved becomes a message beside the field. */
export async function withNameError(request) {
  try {
    return await request;
  } catch (error) {
    if (error.code !== 'users.display_name_reserved') throw error;
    throw new ApiError({ status: 400, code: error.code, message: error.message, details: { display_name: error.message } });
  }
}

/**
 * Changes the display name of a user: their own, or for an administrator anybody's.
 * @param {{user: {id: string, display_name?: string}, changed?: () => void}} props
 */
export function DisplayName({ user, changed }) {
  const form = useForm({ display_name: user.display_name ?? '' }, async ({ display_name: typed }) => {
    const saved = await withNameError(api.patch(`/v1/users/${user.id}`, { display_name: typed.trim() }));
    const name = saved?.display_name ?? typed.trim();
    changeDisplayName(user.id, name);
    if (user.id === myId()) caller.set((was) => ({ ...was, me: { ...was.me, display_name: name } }));
    toast(t('saved'));
    changed?.();
  });
  return html`<${Card} title=${t('people.display_name')}>
    <${Form} form=${form}>
      <${DisplayNameField} form=${form} autocomplete=${user.id === myId() ? 'name' : 'off'} />
      <div class="actions"><button type="submit" class="quiet" disabled=${form.busy}>${t('do.save')}</button></div>
    <//>
  <//>`;
}
