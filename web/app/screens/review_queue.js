import { html, useEffect, useRef } from '../lib.js';
import { myId } from '../access.js';
import { useAddress } from '../address.js';
import { api } from '../api.js';
import { countries, country } from '../countries.js';
import { fullName } from '../customers.js';
import { deferred } from '../deferred.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { nameOf, usePeople } from '../people.js';
import { go } from '../router.js';
import { useStore } from '../store.js';
import { Avatar, Badge, Dash, When } from '../ui/display.js';
import { Empty, toast } from '../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../ui/filters.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { RecordList } from '../ui/record_list.js';

/** The order of the queue: the cases that can be decided come first, of those the oldest. */
export const READY_FIRST = '-ready,opened_at';

/** The filters of the queue, as names of search parameters. */
export const CASE_FILTERS = ['ready', 'assignee', 'suggested_level', 'country', 'second_person', 'kyc_status'];

/** The query of the address that keeps the filters from screen to screen. */
export function keptQuery(query) {
  const kept = new URLSearchParams([...CASE_FILTERS, 'sort'].filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  return kept.size ? `?${kept}` : '';
}

/** Says in a toast which cases a request took or gave back, and which not. */
export function reportOutcomes(cases) {
  const done = cases.filter(({ outcome }) => outcome === 'taken' || outcome === 'given_back').length;
  if (done) toast(t('review.done', { n: done }));
  for (const { outcome, assignee } of cases.filter((one) => !['taken', 'given_back'].includes(one.outcome)).slice(0, 3)) {
    toast(outcome === 'assigned' ? t('review.assigned_to', { name: nameOf(assignee) }) : t(`review.outcome.${outcome}`), 'bad');
  }
}

const change = (path, rows, more) => api.post(`/v1/kyc/cases/${path}`, { customer_ids: rows.map((row) => row.id), ...more })
  .then(({ cases }) => reportOutcomes(cases));

const CaseName = ({ row }) => html`<span class="with-avatar">
  <${Avatar} name=${fullName(row)} size="s" />
  <span class="two-lines"><span>${fullName(row)}</span><span class="fine">${term('customer_type', row.type)}</span></span>
</span>`;

/** The number of hits on sanctions lists that block the verification. */
function Hits({ n }) {
  const text = t('review.open_hits', { n });
  return html`<span class="badge bad" role="img" aria-label=${text} title=${text}><${Icon} name="search" size=${12} />${n}</span>`;
}

/** The state, and one sign of what the case lacks: there is no space for two. */
function State({ row }) {
  const mine = row.pending_decision?.proposed_by === myId();
  return html`<span class="row">${row.pending_decision
    ? html`<${Badge} value=${t(mine ? 'review.state_mine' : 'review.state_waits')} tone="warn" />`
    : html`<${Badge} group="kyc_status" value=${row.kyc_status} />`}
    ${row.escalation ? html`<${Badge} value=${t('review.escalated')} tone="bad" />`
      : row.blocking_hits > 0 ? html`<${Hits} n=${row.blocking_hits} />`
    : !row.ready && !row.pending_decision && html`<${Badge} value=${t('review.no_scan')} tone="warn" />`}</span>`;
}

const levelText = (value) => term('verification_level', value);

const columns = () => [
  { key: 'name', label: t('field.name'), sort: 'last_name', cell: (row) => html`<${CaseName} row=${row} />` },
  { key: 'opened_at', label: t('review.since'), sort: 'opened_at', cell: (row) => html`<${When} at=${row.opened_at} />` },
  { key: 'state', beside: true, label: t('field.state'), sort: 'kyc_status', cell: (row) => html`<${State} row=${row} />` },
  { key: 'level', label: t('customers.level'), sort: 'suggested_level',
    cell: (row) => levelText(row.suggested_level) || html`<${Dash} />` },
  { key: 'country', label: t('field.country'), sort: 'country', minor: true, cell: (row) => country(row.country) || html`<${Dash} />` },
  { key: 'assignee', label: t('review.assignee'), minor: true,
    cell: (row) => (row.assignee ? html`<${Person} id=${row.assignee} />` : html`<${Dash} />`) },
];

function CaseFilters({ list }) {
  const { state } = list;
  const filter = (name, label, options, all) => html`<${Filter} label=${label} value=${state[name]} options=${options} all=${all}
    onChange=${(value) => list.set({ [name]: value })} />`;
  return html`<${Filters}>
    ${filter('assignee', t('review.assignee'), [[myId(), t('review.mine')], ['null', t('review.unassigned')]])}
    ${filter('kyc_status', t('field.state'), optionsOf(['pending', 'in_review'], (value) => term('kyc_status', value)))}
    ${filter('ready', t('review.scans'), [['true', t('review.scans_complete')], ['false', t('review.scans_missing')]])}
    ${filter('suggested_level', t('review.by_documents'), optionsOf(['none', 'basic', 'standard'], levelText))}
    ${filter('second_person', t('review.second'), [['true', t('review.state_waits')], ['false', t('review.not_waiting')]])}
    ${filter('country', t('field.country'), countries(3, true))}
  <//>`;
}

/** The open cases, the oldest first, with the actions for several of them. */
export function ReviewQueue() {
  usePeople();
  const { query } = useAddress();
  const list = useList('/v1/kyc/cases', { filters: CASE_FILTERS, sort: READY_FIRST, limit: 50 });
  const waiting = useStore(deferred);
  const rowsOf = (page) => page.data.filter((row) => !waiting.some(({ key }) => key === row.customer_id))
    .map((row) => ({ ...row, id: row.customer_id }));
  const mounted = useRef(false);
  useEffect(() => {
    if (mounted.current) list.reload(); // A decision was sent, or undone.
    mounted.current = true;
  }, [waiting.length]);
  const first = list.data?.data[0];
  const path = (id) => `/review/${id}${keptQuery(query)}`;
  return html`
    <${PageHead} title=${t('nav.review')} note=${t('review.note')}>
      ${first && html`<button class="start-review" onClick=${() => go(path(first.customer_id))}>
        <${Icon} name="right" size=${16} />${t('review.start')}
      </button>`}
    <//>
    <${CaseFilters} list=${list} />
    <${RecordList} list=${list} title=${t('nav.review')} columns=${columns()} rowsOf=${rowsOf} nameOf=${fullName}
      link=${(row) => path(row.id)} live="customers.*"
      bulk=${[
        { key: 'take', label: t('review.take'), icon: 'check', run: (rows) => change('take', rows) },
        {
          key: 'take_over', label: t('review.take_over'), run: (rows) => change('take', rows, { take_over: true }),
          fits: (row) => row.assignee && row.assignee !== myId(),
        },
        {
          key: 'give_back', label: t('review.give_back'), run: (rows) => change('give-back', rows),
          fits: (row) => row.assignee === myId(),
        },
      ]}
      empty=${html`<${Empty} icon="check" title=${t('review.none')}>${t('review.none_text')}<//>`} />`;
}
