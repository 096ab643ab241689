import { html, useRef, useState } from '../../lib.js';
import { api } from '../../api.js';
import { number } from '../../format.js';
import { t } from '../../i18n.js';
import { containing, useList } from '../../list.js';
import { useLoad } from '../../load.js';
import { hasName } from '../../people.js';
import { loadStyle } from '../../style.js';
import { Empty, Loaded } from '../../ui/feedback.js';
import { Filter, Filters, optionsOf, Search } from '../../ui/filters.js';
import { Icon } from '../../ui/icon.js';
import { PageHead } from '../../ui/page.js';
import { RecordList } from '../../ui/record_list.js';
import { Caller, CALLERS, CLASSES, duration, METHODS, Moment, Status } from './request_parts.js';
import { useRequestStream } from './request_stream.js';

await loadStyle('admin');

const columnsOf = () => [
  {
    key: 'request', label: t('requests.request'),
    cell: (row) => html`<span class="code">${row.endpoint || `${row.method} ${row.path}`}</span>`,
  },
  { key: 'status', label: t('requests.status'), sort: 'status', cell: (row) => html`<${Status} request=${row} />` },
  { key: 'code', minor: true, wide: true, label: t('requests.code'), cell: (row) => html`<span class="code">${row.code}</span>` },
  { key: 'caller', minor: true, label: t('requests.caller'), cell: (row) => html`<${Caller} request=${row} />` },
  {
    key: 'duration', minor: true, label: t('requests.duration'), sort: 'microseconds', num: true,
    cell: (row) => duration(row.microseconds),
  },
  { key: 'at', label: t('requests.at'), sort: 'seq', num: true, cell: (row) => html`<${Moment} at=${row.at} />` },
];

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NEWEST = '-seq';

/** A filter that only links set, with a button that removes it. */
const Chosen = ({ label, children, remove }) => html`<span class="chosen">${label} ${children}
  <button class="bare" aria-label=${t('requests.show_all')} onClick=${remove}><${Icon} name="close" size=${14} /></button></span>`;

/** Returns a page with a new request on top. */
function withNew(page, request, limit) {
  if (!page || page.data.some(({ seq }) => seq === request.seq)) return page;
  return { ...page, data: [request, ...page.data].slice(0, limit), total: page.total + 1 };
}

function List() {
  const [following, setFollowing] = useState(false);
  const asked = useRef(new Set()); // callers without a known name
  const list = useList('/v1/requests', {
    filters: ['class', 'method', 'caller_kind', 'caller', 'code', 'request_id'], limit: 50, sort: NEWEST,
    search: (text) => (UUID.test(text) ? { 'search.request_id': text } : { 'search.path': containing(text) }),
  });
  const { state } = list;
  const live = following && state.sort === NEWEST && state.offset === 0;
  useRequestStream(live, { ...list.selected, sort: '' }, (request) => {
    list.setData((page) => withNew(page, request, list.limit));
    const { caller } = request;
    if (!caller || hasName(caller) || asked.current.has(caller)) return;
    asked.current.add(caller);
    list.reload(); // frames have no names
  }, list.reload);
  const follow = () => {
    if (!live) list.set({ sort: '' });
    setFollowing(!live);
  };
  return html`
    <${Filters}>
      <${Search} label=${t('requests.search')} value=${state.q} onSearch=${(q) => list.set({ q })} />
      <${Filter} label=${t('requests.status')} value=${state.class} onChange=${(value) => list.set({ class: value })}
        options=${optionsOf(CLASSES, (value) => value)} />
      <${Filter} label=${t('requests.method')} value=${state.method} onChange=${(method) => list.set({ method })}
        options=${optionsOf(METHODS, (value) => value)} />
      <${Filter} label=${t('requests.caller')} value=${state.caller_kind} onChange=${(kind) => list.set({ caller_kind: kind })}
        options=${optionsOf(CALLERS, (kind) => t(`requests.caller.${kind}`))} />
      ${['caller', 'code', 'request_id'].map((name) => state[name] && html`
        <${Chosen} key=${name} label=${t(`requests.${name}`)} remove=${() => list.set({ [name]: '' })}>
          <span class="code">${state[name]}</span><//>`)}
      <button class="quiet follow" aria-pressed=${live} onClick=${follow}>${t(live ? 'requests.stop' : 'requests.follow')}</button>
    <//>
    <${RecordList} list=${list} title=${t('nav.requests')} columns=${columnsOf()} lines=${10} link=${(row) => `/admin/requests/${row.seq}`}
      rowsOf=${(page) => page.data.map((row) => ({ ...row, id: row.seq }))}
      empty=${html`<${Empty} icon="endpoints" title=${t('requests.none')}
        action=${html`<a class="button quiet" href="/docs">${t('auth.api')}</a>`}>${t('requests.none_text')}<//>`} />`;
}

/** The latest requests to the server, kept in its memory. */
export default function Requests() {
  const load = useLoad(() => api.get('/v1/requests/status'));
  const keep = load.data?.keep;
  return html`
    <${PageHead} title=${t('nav.requests')} note=${keep > 0 && t('requests.note', { n: number(keep), node: load.data.node })} />
    <${Loaded} load=${load} lines=${10}>${() => (keep > 0
      ? html`<${List} />`
      : html`<section class="card"><${Empty} icon="endpoints" title=${t('requests.off')}>${t('requests.off_text')}<//></section>`)}<//>`;
}
