import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Copy } from '../../ui/display.js';
import { Dialog } from '../../ui/dialog.js';
import { Loaded, Notice, useAction } from '../../ui/feedback.js';
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

/** The kinds of events by the type of their records: [type, kinds]. */
function byRecordType(kinds) {
  const groups = new Map();
  for (const { type, rec_type: of } of kinds) groups.set(of, [...(groups.get(of) ?? []), type]);
  return [...groups].sort(([a], [b]) => term('rec_type', a).localeCompare(term('rec_type', b)));
}

/**
 * The choice of events from the list of the server; without a choice, all are sent. A pattern that was entered elsewhere, such as
 * customers.*, is kept until it is removed.
 */
function EventTypes({ form }) {
  const load = useLoad(async () => (await api.get('/v1/events/types')).data, []);
  const chosen = words(form.values.types ?? '');
  const toggle = (type) => form.set('types', (chosen.includes(type) ? chosen.filter((one) => one !== type) : [...chosen, type]).join(', '));
  const known = new Set((load.data ?? []).map(({ type }) => type));
  const patterns = load.data ? chosen.filter((one) => !known.has(one)) : [];
  const box = (type, label) => html`<label key=${type} class="menu-item">
    <input type="checkbox" checked=${chosen.includes(type)} onChange=${() => toggle(type)} />${label}
  </label>`;
  return html`<fieldset class="event-types"><legend>${t('webhooks.types')}</legend>
    <p class="fine" role="status">${chosen.length ? t('webhooks.types_chosen', { n: chosen.length }) : t('webhooks.types_all')}</p>
    ${patterns.map((type) => box(type, html`<span class="code">${type}</span>`))}
    <${Loaded} load=${load} lines=${3}>${(kinds) => byRecordType(kinds).map(([of, types]) => html`<details key=${of}>
      <summary>${term('rec_type', of)}${types.some((type) => chosen.includes(type)) && html` <span class="count">${
        types.filter((type) => chosen.includes(type)).length}</span>`}</summary>
      ${types.map((type) => box(type, html`<span class="code">${type}</span>`))}
    </details>`)}<//>
    ${form.errors.types && html`<small class="field-error">${form.errors.types}</small>`}
  </fieldset>`;
}

/** Why a call has failed, in the language of the screen. The number of an answer and an unknown reason stay as the server says them. */
export const failureText = (code, text) => t(`webhooks.failure.${code}`, { text, status: /\d{3}/.exec(text)?.[0] ?? '' });

/** A button that sends a test to the typed address, before the webhook is saved, and the outcome. */
function TryAddress({ form }) {
  const [tried, setTried] = useState(null); // with its address
  const { url } = form.values;
  const send = useAction(async () => {
    setTried(null);
    try {
      setTried({ url, ...(await api.post('/v1/webhooks/test', { url })) });
    } catch (error) {
      if (!error.fields) throw error;
      form.setErrors((was) => ({ ...was, ...error.fields }));
    }
  });
  const shown = tried?.url === url && tried;
  return html`<div class="stack try-address">
    <div><button type="button" class="quiet small" disabled=${send.busy || !url.trim()} aria-busy=${send.busy} onClick=${send.run}>
      ${t('webhooks.try')}</button></div>
    ${shown && (shown.delivered
      ? html`<${Notice} tone="good" title=${t('webhooks.try_accepted')}>
          ${t('webhooks.try_answer', { status: shown.response_status, ms: number(shown.duration_ms) })}<//>`
      : html`<${Notice} tone="warn" title=${t('webhooks.try_failed')}>${failureText(shown.error_code, shown.error)}<//>`)}
  </div>`;
}

/** The fields of a webhook; choose adds the choice of its account, which cannot be changed later. */
export function WebhookForm({ form, label, cancel, choose }) {
  const load = useLoad(async () => (choose ? (await api.get('/v1/service-accounts', { limit: 100 })).data : []), []);
  const accounts = (load.data ?? []).filter((row) => row.status === 'active').map((row) => [row.id, row.name]);
  return html`<${Form} form=${form}>
    <${Field} form=${form} name="url" type="url" label=${t('webhooks.url')} hint=${t('webhooks.url_hint')} autocomplete="off" />
    ${choose && html`<${TryAddress} form=${form} />`}
    <${Field} form=${form} name="description" optional label=${t('webhooks.description')} />
    ${choose && html`<${Field} form=${form} name="account_id" label=${t('webhooks.account')} hint=${t('webhooks.account_hint')}
      options=${[['', t('webhooks.myself')], ...accounts]} />`}
    <${EventTypes} form=${form} />
    <${Field} form=${form} name="include_record" type="checkbox" label=${t('webhooks.include_record')} />
    <${Actions} form=${form} label=${label} cancel=${cancel} />
  <//>`;
}
