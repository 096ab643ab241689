import { html } from '../lib.js';
import { api, queryString } from '../api.js';
import { CALL, isClient, mayCall, useCaller } from '../access.js';
import { defer, deferred } from '../deferred.js';
import { clock, dateTime, dayName } from '../format.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { markNotificationsRead, useNotifications, useUnread } from '../live_updates.js';
import { usePreferences } from '../preferences.js';
import { consolePath, go } from '../router.js';
import { useStore } from '../store.js';
import { Empty, Loaded, toastError, useAction } from '../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { ListTools } from '../ui/list_tools.js';
import { NoMatch } from '../ui/record_list.js';
import { BulkActions, useSelection } from '../ui/selection.js';
import { Pager } from '../ui/table.js';
import { EventIcon, useNotificationText } from './activity.js';

const EVENTS = [
  'message_received', 'customer_created', 'customer_status_changed', 'customer_notice', 'kyc_document_expiring',
  'kyc_decision_pending', 'kyc_decision_closed', 'kyc_case_escalated', 'screening_escalated', 'task_assigned',
  'task_status_changed', 'task_due', 'password_changed', 'new_device_login', 'credential_added', 'credential_removed', 'factor_changed',
  'service_token_expiring', 'access_expiring',
  'webhook_paused', 'webhook_disabled',
];

/** The events that customers are notified of. */
const EVENTS_OF_CLIENTS = [
  'message_received', 'customer_status_changed', 'customer_notice', 'kyc_document_expiring', 'task_assigned', 'task_status_changed',
  'task_due', 'password_changed', 'new_device_login', 'credential_added', 'credential_removed', 'factor_changed',
];

const eventName = (event) => (isClient() ? term('client_event', event) : term('event', event));

function Title({ item, title, path, open }) {
  return html`<p>${path ? html`<a class="plain" href=${path} onClick=${open}>${title}</a>` : html`<span>${title}</span>`}${
    item.test && html` <span class="badge none">${t('notifications.test')}</span>`}${
    !item.read && html`<span class="sr"> (${t('nav.unread')})</span>`}</p>`;
}

function Item({ item, textOf, markRead, hide, selection }) {
  const path = consolePath(item.link_url);
  const { title, content } = textOf(item);
  function open(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (!item.read) markRead(item);
    go(path); // at once: after the answer, the user may be elsewhere
  }
  const external = item.link_url && !path;
  return html`<li class=${item.read ? '' : 'unread'}>
    <span class="pick">
      ${!isClient() && html`<label><input type="checkbox" aria-label=${t('list.select_row', { name: title })} checked=${selection.has(item)}
        onClick=${(event) => selection.toggle(item, event.shiftKey)} /></label>`}
      <${EventIcon} item=${item} />
    </span>
    <div class="grow">
      <${Title} item=${item} title=${title} path=${path} open=${open} />
      ${content && html`<p class="fine">${content}</p>`}
      ${external && html`<p class="fine">
        <a href=${item.link_url} rel="noopener noreferrer" target="_blank">${item.link_text || t('notifications.open')}</a>
      </p>`}
    </div>
    <time class="fine" dateTime=${item.created_at} title=${dateTime(item.created_at)}>${clock(item.created_at)}</time>
    ${item.read
      ? html`<span class="icon-space"></span>`
      : html`<button class="bare" title=${t('notifications.mark')} aria-label=${t('notifications.mark_one', { title })}
          onClick=${() => markRead(item)}><${Icon} name="check" size=${16} /></button>`}
    ${mayCall(CALL.hideNotification) && html`<button class="bare" title=${t('do.hide')} aria-label=${t('notifications.hide_one', { title })}
      onClick=${() => hide(item)}><${Icon} name="trash" size=${16} /></button>`}
  </li>`;
}

/** Groups notifications by day: [day in words, items]. */
function byDay(items) {
  const days = new Map();
  for (const item of items) {
    const key = dayName(item.created_at);
    days.set(key, [...(days.get(key) ?? []), item]);
  }
  return [...days];
}

const hideKey = (item) => `hide ${item.id}`;

const postHide = (item, options) => markNotificationsRead(
  () => api.post(`/v1/notifications/${item.id}/hide`, undefined, { body: undefined, ...options }),
);

const patchRead = (item) => api.patch(`/v1/notifications/${item.id}/read`, { read: true });

function Days({ items, ...rest }) {
  return html`<div aria-live="polite">${byDay(items).map(([name, ofDay]) => html`
    <section key=${name} class="inbox-day">
      <h2>${name}</h2>
      <ul class="items inbox">${ofDay.map((item) => html`<${Item} key=${item.id} item=${item} ...${rest} />`)}</ul>
    </section>`)}
  </div>`;
}

/** The action for selected notifications: one request, which leaves those that are read as they are. */
const bulkActions = (rows) => (rows.some((item) => !item.read) ? [{
  key: 'read', label: t('notifications.mark'), icon: 'check',
  async run(chosen) {
    const ids = chosen.map((item) => item.id).join();
    await markNotificationsRead(() => api.post(`/v1/notifications/read-all${queryString({ 'search.id': ids })}`));
  },
}] : []);

/** The box that selects all notifications of the page, and the tools of the list. */
function Tools({ list, selection }) {
  const shown = list.data?.data ?? [];
  const n = selection.rows.length;
  const all = n > 0 && n === shown.length;
  return html`<${ListTools} list=${list}>
    ${shown.length > 0 && html`<label class="select-all"><input type="checkbox" aria-label=${t('list.select_all')} checked=${all}
      indeterminate=${n > 0 && !all} onChange=${() => selection.toggleAll(!all)} /></label>`}
    <${BulkActions} selection=${selection} actions=${bulkActions(selection.rows)} done=${list.reload} />
  <//>`;
}

/** The caller's notifications, kept current by the stream. */
export default function Notifications() {
  usePreferences();
  const { me } = useCaller();
  const textOf = useNotificationText();
  const list = useList('/v1/notifications', { filters: ['read', 'event'], sort: '-created_at', fixed: { 'search.user_id': me.id } });
  const { state } = list;
  const selection = useSelection(list.data?.data ?? [], (item) => textOf(item).title);
  const newestFirst = !list.filtered && state.offset === 0;
  useNotifications((item) => {
    if (!item || !newestFirst) return list.reload();
    const add = (was) => ({ ...was, total: was.total + 1, data: [item, ...was.data.filter((one) => one.id !== item.id)] });
    return list.setData((was) => was && add(was));
  });
  async function markRead(item) {
    try {
      await markNotificationsRead(() => patchRead(item));
      list.setData((was) => ({ ...was, data: was.data.map((one) => (one.id === item.id ? { ...one, read: true } : one)) }));
    } catch (error) {
      toastError(error);
    }
  }
  /** Hides a notification in ten seconds, until which the user can undo it. It leaves the screen at once. */
  function hide(item) {
    const failed = (error) => {
      toastError(error);
      list.reload();
    };
    const run = (options) => postHide(item, options).then(() => list.reload());
    defer({ key: hideKey(item), text: t('notifications.hidden_one'), run, failed });
  }
  const waiting = useStore(deferred);
  const shown = (items) => items.filter((item) => !waiting.some(({ key }) => key === hideKey(item)));
  const all = useAction(async () => {
    await markNotificationsRead(() => api.post(`/v1/notifications/read-all${queryString(list.selected)}`));
    list.reload();
  });
  const { notifications: unread } = useUnread();
  const hasUnread = unread > 0 || list.data?.data.some((item) => !item.read);
  const empty = list.filtered
    ? html`<${NoMatch} clear=${list.clear} />`
    : html`<${Empty} icon="bell" title=${t('notifications.none')}>${t('notifications.none_text')}<//>`;
  return html`
    <${PageHead} title=${t('nav.notifications')}>
      ${hasUnread && html`<button class="quiet" disabled=${all.busy} onClick=${all.run}>
        ${all.busy ? t('notifications.marking') : t('notifications.mark_all')}
      </button>`}
    <//>
    <${Filters}>
      <${Filter} label=${t('notifications.show')} value=${state.read} onChange=${(read) => list.set({ read })}
        options=${[['false', t('notifications.unread')], ['true', t('notifications.read')]]} />
      <${Filter} label=${t('notifications.event')} value=${state.event} onChange=${(event) => list.set({ event })}
        options=${optionsOf(isClient() ? EVENTS_OF_CLIENTS : EVENTS, eventName)} />
    <//>
    <section class="card flush" aria-label=${t('nav.notifications')}>
      <${Tools} list=${list} selection=${selection} />
      <${Loaded} load=${list} lines=${8}>${({ data }) => (data.length
        ? html`<${Days} items=${shown(data)} textOf=${textOf} markRead=${markRead} hide=${hide} selection=${selection} />`
        : empty)}<//>
      ${list.data && html`<${Pager} offset=${state.offset} limit=${list.limit} total=${list.data.total} onMove=${list.move}
        onSize=${list.setLimit} />`}
    </section>`;
}
