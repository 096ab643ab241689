import { html } from '../lib.js';
import { t } from '../i18n.js';
import { Icon } from '../ui/icon.js';

/** Users that were chosen one by one; a click removes one. */
export const ChosenUsers = ({ users, remove, label = t('chats.participants') }) => html`<ul class="chips" aria-label=${label}>
  ${users.map((one) => html`<li key=${one.id}>
    <button type="button" class="chip" aria-label=${t('chats.remove', { name: one.name })} onClick=${() => remove(one.id)}>
      <bdi class="person-name">${one.name}</bdi><${Icon} name="close" size=${12} />
    </button>
  </li>`)}
</ul>`;
