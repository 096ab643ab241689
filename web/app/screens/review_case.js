import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { myId } from '../access.js';
import { api } from '../api.js';
import { fullName } from '../customers.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { go, route } from '../router.js';
import { useStore } from '../store.js';
import { Empty, Loaded, Notice, toast, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { DecisionForm, useDecision } from './decision_form.js';
import { neighbour } from './decision_rules.js';
import { PendingDecision } from './pending_decision.js';
import { Evidence } from './review_evidence.js';
import { KeysDialog, useKeys } from './review_keys.js';
import { CASE_FILTERS, keptQuery, reportOutcomes } from './review_queue.js';

const QUEUE_LIMIT = 100; // cases that j and k reach; the server's limit of a page
const CHOICE_KEYS = { verified: 'A', action_required: 'N', rejected: 'R' };

/** Loads the queue that the case belongs to: the filters stand in the address. */
function useQueue(query) {
  const filters = Object.fromEntries(CASE_FILTERS.map((name) => [`search.${name}`, query.get(name) ?? '']));
  const params = { limit: QUEUE_LIMIT, sort: query.get('sort') ?? 'opened_at', ...filters };
  return useLoad(() => api.get('/v1/kyc/cases', params), [JSON.stringify(params)]);
}

/** Loads one case. The row of the queue may be missing: the case was decided, or the filters leave it out. */
async function loadCase(id) {
  const path = `/v1/customers/${id}`;
  const [customer, { record: kyc, etag }, page] = await Promise.all([
    api.get(path), api.withETag(`${path}/kyc`), api.get('/v1/kyc/cases', { limit: 1, 'search.customer_id': id }),
  ]);
  return { customer, kyc, etag, row: page.data[0] ?? null };
}

/** The button that takes the case or gives it back. */
function Assignment({ row, change }) {
  if (!row) return null;
  if (row.assignee === myId()) {
    return html`<button class="quiet" onClick=${() => change('give-back', false)}>${t('review.give_back')}</button>`;
  }
  if (!row.assignee) return html`<button class="quiet" onClick=${() => change('take', false)}>${t('review.take_one')}</button>`;
  return html`<button class="quiet" onClick=${() => change('take', true)}>${t('review.take_over')}</button>`;
}

/** A decision by the form, or by keys: a letter chooses, a digit takes a template, Enter sends. */
function Decide({ load, done }) {
  const { kyc, etag, customer } = load.data;
  const decision = useDecision({ kyc, etag, customer, done, reload: load.reload });
  const { choose } = decision;
  const box = useRef();
  const wanted = useRef(''); // what to do with the button once the last key has had its effect: focus or click
  const [, render] = useState(0);
  const then = (what) => {
    wanted.current = what;
    render((n) => n + 1);
  };
  useLayoutEffect(() => {
    const button = wanted.current && box.current.querySelector('button[type="submit"]');
    if (!button) return;
    button[wanted.current]();
    wanted.current = '';
  });
  const byKey = (choice) => () => {
    choose(choice);
    then('focus');
  };
  const picked = useRef(Promise.resolve());
  const pick = (n) => () => {
    picked.current = decision.pick(n).then(() => then('focus'));
  };
  const digits = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [String(i + 1), pick(i + 1)]));
  useKeys({
    a: byKey('verified'), r: byKey('rejected'), n: byKey('action_required'), ...digits,
    Enter: () => picked.current.then(() => then('click')), // also when the button has not got the focus yet
  });
  return html`<div ref=${box}>
    <${Card} title=${t('review.decision')}>
      ${decision.choices.length
        ? html`<${DecisionForm} decision=${decision} keys=${CHOICE_KEYS} />`
        : html`<${Empty} icon="check" title=${t('review.closed')} />`}
    <//>
  </div>`;
}

function Confirm({ load, done }) {
  const box = useRef();
  useKeys({
    a: () => box.current.querySelector('.confirm-decision')?.focus(),
    r: () => box.current.querySelector('textarea')?.focus(),
  });
  return html`<div ref=${box}><${Card} title=${t('review.second')}>
    <${PendingDecision} kyc=${load.data.kyc} etag=${load.data.etag} done=${done} />
  <//></div>`;
}

function Workspace({ load, done }) {
  const { customer, kyc, row } = load.data;
  const other = row?.assignee && row.assignee !== myId();
  return html`
    ${other && html`<${Notice} tone="warn"><${Person} id=${row.assignee} signIn /> ${t('review.works_on_it')}<//>`}
    <div class="review-grid" data-case=${customer.id}>
      <${Evidence} customer=${customer} kyc=${kyc} />
      <div class="review-decision">
        ${kyc.pending_decision
          ? html`<${Confirm} key=${kyc.pending_decision.id} load=${load} done=${done} />`
          : html`<${Decide} key=${customer.id} load=${load} done=${done} />`}
      </div>
    </div>`;
}

/** One case of the queue: the evidence on the left, the decision on the right. After a decision the next case follows. */
export function ReviewCase({ id }) {
  usePreferences();
  usePeople();
  const { query } = useStore(route);
  const [help, setHelp] = useState(false);
  const queue = useQueue(query);
  const load = useLoad(() => loadCase(id), [id]);
  const ids = (queue.data?.data ?? []).map((row) => row.customer_id);
  const kept = keptQuery(query);
  const open = (next) => next && go(`/review/${next}${kept}`);
  const step = (by) => () => open(neighbour(ids, id, by));
  const done = (answer) => {
    toast(answer.pending_decision ? t('review.sent_second') : t('review.decided', { name: fullName(load.data.customer) }));
    const next = neighbour(ids, id) ?? ids.find((one) => one !== id);
    queue.reload();
    if (route.get().path !== `/review/${id}`) return; // The user has gone on meanwhile.
    if (next) open(next);
    else go(`/review${kept}`);
  };
  const { run: change } = useAction(async (path, over) => {
    const { cases } = await api.post(`/v1/kyc/cases/${path}`, { customer_ids: [id], ...(over && { take_over: true }) });
    reportOutcomes(cases);
    load.reload();
  });
  useKeys({ j: step(1), k: step(-1), t: () => change('take', false), '?': () => setHelp(true) });
  const current = load.data?.customer.id === id ? load.data : null; // not the case before, while the next one loads
  const at = ids.indexOf(id);
  const position = at < 0 ? '' : t('review.position', { at: at + 1, total: queue.data.total });
  const name = current ? fullName(current.customer) : t('review.one');
  return html`
    <${PageHead} title=${html`<bdi>${name}</bdi>`} plainTitle=${name} back=${[`/review${kept}`, t('nav.review')]} note=${position}>
      <button class="quiet" disabled=${at < 1} onClick=${step(-1)}><${Icon} name="left" size=${16} />${t('pager.previous')}</button>
      <button class="quiet" disabled=${!neighbour(ids, id)} onClick=${step(1)}>
        ${t('pager.next')}<${Icon} name="right" size=${16} />
      </button>
      <${Assignment} row=${current?.row} change=${change} />
      <button class="quiet" aria-haspopup="dialog" aria-keyshortcuts="?" onClick=${() => setHelp(true)}>${t('review.keys')}</button>
    <//>
    <${Loaded} load=${current || load.error ? load : { ...load, data: undefined }} lines=${10}>${() => current && html`
      <${Workspace} key=${id} load=${load} done=${done} />`}<//>
    ${help && html`<${KeysDialog} close=${() => setHelp(false)} />`}`;
}
