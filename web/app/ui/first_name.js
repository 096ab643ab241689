import { html } from '../lib.js';
import { NO_FIRST_NAME } from '../customers.js';
import { t } from '../i18n.js';
import { Field } from './form.js';

/** The field of the first name, or that the person has one name only. */
export function FirstNameField({ form, ...rest }) {
  const none = form.values.first_name === NO_FIRST_NAME;
  const change = (event) => form.set('first_name', event.target.checked ? NO_FIRST_NAME : '');
  return html`<div class="stack tight">
    ${!none && html`<${Field} form=${form} name="first_name" ...${rest} />`}
    <div class="field check"><label><input type="checkbox" checked=${none} onChange=${change} />
      <span>${t('form.one_name')}</span></label></div>
  </div>`;
}
