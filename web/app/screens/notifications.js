import { html } from '../lib.js';
import { api } from '../api.js';
import { useCaller } from '../access.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { countUnreadSoon, useNotifications } from '../live.js';
import { go, ownPath } from '../router.js';
import { Badge, Pager, When } from '../ui/data.js';
import { Empty, Loaded, toastError, useAction } from '../ui/feedback.js';
import { Filter, Filters } from '../ui/filters.js';
import { PageHead } from '../ui/page.js';

const EVENTS = ['message_received', 'customer_created', 'customer_status_changed', 'kyc_document_expiring', 'task_assigned', 'task_status_changed', 'password_changed', 'new_device_login'];

function Item({ item, read }) {
  const path = ownPath(item.link_url);
  const title = item.title || term('event', item.event);
  async function open(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (!item.read) await read(item);
    go(path);
  }
  return html`<li class=${item.read ? '' : 'unread'}>
    <div class="grow">
      <p class="item-title">${path ? html`<a class="plain" href=${path} onClick=${open}>${title}</a>` : html`<span>${title}</span>`}${!item.read && html`<span class="sr"> (${t('nav.unread')})</span>`}</p>
      ${item.content && html`<p>${item.content}</p>`}
      <p class="fine row"><${Badge} group="event" value=${item.event} /><${When} at=${item.created_at} />${item.link_url && !path && html`<a href=${item.link_url} rel="noopener noreferrer" target="_blank">${item.link_text || t('notifications.open')}</a>`}</p>
    </div>
    ${!item.read && html`<button class="quiet small" onClick=${() => read(item)}>${t('notifications.mark')}</button>`}
  </li>`;
}

/** The inbox: everything the caller was told, as it arrives. */
export default function Notifications() {
  const { me } = useCaller();
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
    <section class="card" aria-label=${t('nav.notifications')}>
      <${Loaded} load=${list} lines=${8}>${({ data }) => (data.length
        ? html`<ul class="items inbox" aria-live="polite">${data.map((item) => html`<${Item} key=${item.id} item=${item} read=${read} />`)}</ul>`
        : html`<${Empty} icon="bell" title=${list.filtered ? t('list.no_match') : t('notifications.none')} action=${list.filtered && html`<button class="quiet" onClick=${list.clear}>${t('list.clear')}</button>`}>${!list.filtered && t('notifications.none_text')}<//>`)}<//>
      ${list.data && html`<${Pager} offset=${list.state.offset} limit=${list.limit} total=${list.data.total} onMove=${list.move} />`}
    </section>`;
}
