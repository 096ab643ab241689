import { html } from '../../lib.js';
import { api } from '../../api.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Copy } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Notice } from '../../ui/feedback.js';
import { Actions, Field, Form } from '../../ui/form.js';

const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** The body of a request from the values of the form. */
export function valuesOf({ account_id: account, types, ...values }) {
  return { ...values, types: words(types), ...(account && { account_id: account }) };
}

const TONES = { active: 'good', paused: 'warn', disabled: 'bad' };

/** The status of a webhook, and why Kontor has changed it. */
export const State = ({ webhook }) => html`<${Badge} tone=${TONES[webhook.status]}
  value=${t(`webhooks.status.${webhook.reason || webhook.status}`)} />`;

/** Shows a new secret. The server returns it only once. */
export const SecretCreated = ({ secret, close }) => html`<${Dialog} title=${t('webhooks.secret_created')} close=${close}>
  <${Notice} tone="warn">${t('webhooks.secret_once')}<//>
  <p class="secret"><span class="code">${secret}</span><${Copy} text=${secret} label=${t('webhooks.copy')} /></p>
  <p class="fine">${t('webhooks.secret_use')}</p>
  <div class="actions"><button onClick=${close}>${t('webhooks.saved')}</button></div>
<//>`;

/** The fields of a webhook; choose adds the choice of its account, which cannot be changed later. */
export function WebhookForm({ form, label, cancel, choose }) {
  const load = useLoad(async () => (choose ? (await api.get('/v1/service-accounts', { limit: 100 })).data : []), []);
  const accounts = (load.data ?? []).filter((row) => row.status === 'active').map((row) => [row.id, row.name]);
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="url" type="url" label=${t('webhooks.url')} hint=${t('webhooks.url_hint')} autocomplete="off" />
    <${Field} form=${form} name="description" optional label=${t('webhooks.description')} />
    ${choose && html`<${Field} form=${form} name="account_id" label=${t('webhooks.account')} hint=${t('webhooks.account_hint')}
      options=${[['', t('webhooks.myself')], ...accounts]} />`}
    <${Field} form=${form} name="types" rows=${2} optional label=${t('webhooks.types')} hint=${t('webhooks.types_hint')} />
    <${Field} form=${form} name="include_record" type="checkbox" label=${t('webhooks.include_record')} />
    <${Actions} form=${form} label=${label} cancel=${cancel} />
  <//>`;
}
