import { html } from '../lib.js';
import { api } from '../api.js';
import { useCaller } from '../access.js';
import { clock, dateTime, dayName } from '../format.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { countUnreadSoon, useNotifications } from '../live.js';
import { usePrefs } from '../prefs.js';
import { go, ownPath } from '../router.js';
import { Pager } from '../ui/data.js';
import { Empty, Loaded, toastError, useAction } from '../ui/feedback.js';
import { Filter, Filters } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { EventIcon, useWords } from './activity.js';

const EVENTS = ['message_received', 'customer_created', 'customer_status_changed', 'kyc_document_expiring', 'task_assigned', 'task_status_changed', 'password_changed', 'new_device_login'];

function Item({ item, words, read }) {
  const path = ownPath(item.link_url);
  const { title, content } = words(item);
  async function open(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (!item.read) await read(item);
    go(path);
  }
  return html`<li class=${item.read ? '' : 'unread'}>
    <${EventIcon} item=${item} />
    <div class="grow">
      <p>${path ? html`<a class="plain" href=${path} onClick=${open}>${title}</a>` : html`<span>${title}</span>`}${item.test && html` <span class="badge none">${t('notifications.test')}</span>`}${!item.read && html`<span class="sr"> (${t('nav.unread')})</span>`}</p>
      ${content && html`<p class="fine">${content}</p>`}
      ${item.link_url && !path && html`<p class="fine"><a href=${item.link_url} rel="noopener noreferrer" target="_blank">${item.link_text || t('notifications.open')}</a></p>`}
    </div>
    <time class="fine" dateTime=${item.created_at} title=${dateTime(item.created_at)}>${clock(item.created_at)}</time>
    ${item.read ? html`<span class="icon-space"></span>` : html`<button class="bare" title=${t('notifications.mark')} aria-label=${t('notifications.mark_one', { title })} onClick=${() => read(item)}><${Icon} name="check" size=${16} /></button>`}
  </li>`;
}

/** Notifications in the order of time, put together by days: [day in words, items]. */
function byDay(items) {
  const days = new Map();
  for (const item of items) {
    const key = dayName(item.created_at);
    days.set(key, [...(days.get(key) ?? []), item]);
  }
  return [...days];
}

/** The inbox: everything the caller was told, as it arrives. */
export default function Notifications() {
  usePrefs();
  const { me } = useCaller();
  const words = useWords();
  const list = useList('/v1/notifications', { filters: ['read', 'event'], sort: '-created_at', fixed: { 'search.user_id': me.id } });
  const plain = !list.filtered && list.state.offset === 0;
  useNotifications((item) => {
    if (!item || !plain) return list.reload();
    return list.setData((was) => was && { ...was, total: was.total + 1, data: [item, ...was.data.filter((one) => one.id !== item.id)] });
  });
  async function read(item) {
    try {
      await api.patch(`/v1/notifications/${item.id}/read`, { read: true });
      list.setData((was) => ({ ...was, data: was.data.map((one) => (one.id === item.id ? { ...one, read: true } : one)) }));
      countUnreadSoon();
    } catch (error) {
      toastError(error);
    }
  }
  const all = useAction(async () => {
    for (let more = true; more;) { // No route marks all at once; what is marked leaves the list of the unread.
      const page = await api.get('/v1/notifications', { limit: 50, 'search.user_id': me.id, 'search.read': 'false' });
      await Promise.all(page.data.map((item) => api.patch(`/v1/notifications/${item.id}/read`, { read: true })));
      more = page.has_more;
    }
    countUnreadSoon();
    list.reload();
  });
  const hasUnread = list.data?.data.some((item) => !item.read);
  return html`
    <${PageHead} title=${t('nav.notifications')}>${hasUnread && html`<button class="quiet" disabled=${all.busy} onClick=${all.run}>${all.busy ? t('notifications.marking') : t('notifications.mark_all')}</button>`}<//>
    <${Filters}>
      <${Filter} label=${t('notifications.show')} value=${list.state.read} options=${[['false', t('notifications.unread')], ['true', t('notifications.read')]]} onChange=${(value) => list.set({ read: value })} />
      <${Filter} label=${t('notifications.event')} value=${list.state.event} options=${EVENTS.map((event) => [event, term('event', event)])} onChange=${(value) => list.set({ event: value })} />
    <//>
    <section class="card flush" aria-label=${t('nav.notifications')}>
      <${Loaded} load=${list} lines=${8}>${({ data }) => (data.length
        ? html`<div aria-live="polite">${byDay(data).map(([name, items]) => html`<section key=${name} class="inbox-day"><h2>${name}</h2><ul class="items inbox">${items.map((item) => html`<${Item} key=${item.id} item=${item} words=${words} read=${read} />`)}</ul></section>`)}</div>`
        : html`<${Empty} icon="bell" title=${list.filtered ? t('list.no_match') : t('notifications.none')} action=${list.filtered && html`<button class="quiet" onClick=${list.clear}>${t('list.clear')}</button>`}>${!list.filtered && t('notifications.none_text')}<//>`)}<//>
      ${list.data && html`<${Pager} offset=${list.state.offset} limit=${list.limit} total=${list.data.total} onMove=${list.move} />`}
    </section>`;
}
