import { html } from '../lib.js';
import { api } from '../api.js';
import { language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { Badge, When } from '../ui/display.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

const deviceOf = (session) => session.device_id || t('sessions.unnamed');

const MEANS = { pwd: 'pwd', otp: 'otp', hwk: 'passkey', swk: 'passkey', fed: 'fed' }; // amr (RFC 8176) → text

/** Returns how a session was authenticated in words, such as "password and one-time code". */
export function meansOf({ amr = [] }) {
  const means = [...new Set(amr.map((one) => MEANS[one]).filter(Boolean))].map((one) => term('means', one));
  return new Intl.ListFormat(language.get()).format(means);
}

function Session({ session, end }) {
  const means = meansOf(session);
  return html`<li>
    <${Icon} name="device" />
    <div class="grow two-lines">
      <span>${deviceOf(session)}</span>
      <span>${means && `${t('sessions.means', { means })} · `}${t('sessions.last')} <${When} at=${session.last_used_at} /></span>
    </div>
    ${session.current
      ? html`<${Badge} value=${t('sessions.this')} tone="good" />`
      : html`<button class="quiet small" onClick=${end} aria-label=${t('sessions.end_device', { device: deviceOf(session) })}>
          ${t('sessions.end')}
        </button>`}
  </li>`;
}

/** A user's sessions; any of them can be signed out. */
export function Sessions({ userId }) {
  const path = `/v1/users/${userId}/sessions`;
  const load = useLoad(async () => (await api.get(path, { limit: 100, sort: '-last_used_at' })).data, [userId]);
  async function end(session) {
    const text = t('sessions.end_text', { device: deviceOf(session) });
    if (!(await confirm({ title: t('sessions.end'), text, action: t('sessions.end') }))) return;
    try {
      await api.delete(`${path}/${session.id}`);
      load.reload();
      toast(t('sessions.ended'));
    } catch (error) {
      toastError(error);
    }
  }
  return html`<${Card} title=${t('sessions.title')}>
    <${Loaded} load=${load} lines=${3}>${(rows) => (rows.length
      ? html`<ul class="items">${rows.map((one) => html`<${Session} key=${one.id} session=${one} end=${() => end(one)} />`)}</ul>`
      : html`<${Empty} icon="device" title=${t('sessions.none')}>${t('sessions.none_text')}<//>`)}<//>
  <//>`;
}
