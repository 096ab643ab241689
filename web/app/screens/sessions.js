import { html } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge, When } from '../ui/data.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

/** The devices a user is signed in on; any of them can be signed out from here. */
export function Sessions({ userId }) {
  const load = useLoad(async () => (await api.get(`/v1/users/${userId}/sessions`, { limit: 100, sort: '-last_used_at' })).data, [userId]);
  const nameOf = (one) => one.device_id || t('sessions.unnamed');
  async function end(one) {
    if (!(await confirm({ title: t('sessions.end'), text: t('sessions.end_text', { device: nameOf(one) }), action: t('sessions.end') }))) return;
    try {
      await api.delete(`/v1/users/${userId}/sessions/${one.id}`);
      load.reload();
      toast(t('sessions.ended'));
    } catch (error) {
      toastError(error);
    }
  }
  return html`<${Card} title=${t('sessions.title')}>
    <${Loaded} load=${load} lines=${3}>${(rows) => (rows.length
      ? html`<ul class="items">${rows.map((one) => html`<li key=${one.id}><${Icon} name="device" />
          <div class="grow two-lines"><span>${nameOf(one)}</span><span>${t('sessions.last')} <${When} at=${one.last_used_at} /></span></div>
          ${one.current ? html`<${Badge} value=${t('sessions.this')} tone="good" />` : html`<button class="quiet small" onClick=${() => end(one)} aria-label=${t('sessions.end_device', { device: nameOf(one) })}>${t('sessions.end')}</button>`}</li>`)}</ul>`
      : html`<${Empty} icon="device" title=${t('sessions.none')} />`)}<//>
  <//>`;
}
