import { html, useRef, useState } from '../lib.js';
import { myId } from '../access.js';
import { api } from '../api.js';
import { fullName } from '../customers.js';
import { defer, deferred, undoLast } from '../deferred.js';
import { useFiles } from '../file_lists.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { go, route } from '../router.js';
import { useStore } from '../store.js';
import { Empty, Loaded, Notice, toast, useAction } from '../ui/feedback.js';
import { fileAfter, FileViewer, seenFiles } from '../ui/file_preview.js';
import { Icon } from '../ui/icon.js';
import { useKeys } from '../ui/keys.js';
import { Card, PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { DecisionForm, useDecision } from './decision_form.js';
import { givesLevel, neighbour } from './decision_rules.js';
import { PendingDecision } from './pending_decision.js';
import { Evidence } from './review_evidence.js';
import { KeysDialog, useResting } from './review_keys.js';
import { CASE_FILTERS, keptQuery, READY_FIRST, reportOutcomes } from './review_queue.js';

const QUEUE_LIMIT = 100; // cases that j and k reach; the server's limit of a page
const CHOICE_KEYS = { verified: 'A', action_required: 'N', rejected: 'R' };

const sent = new Map(); // the customers that were decided about → when, by performance.now()

/** Loads the queue that the case belongs to: the filters stand in the address. */
function useQueue(query) {
  const filters = Object.fromEntries(CASE_FILTERS.map((name) => [`search.${name}`, query.get(name) ?? '']));
  const params = { limit: QUEUE_LIMIT, sort: query.get('sort') ?? READY_FIRST, ...filters };
  return useLoad(async () => {
    const asked = performance.now();
    return { ...(await api.get('/v1/kyc/cases', params)), asked };
  }, [JSON.stringify(params)]);
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

/** The scans of a case: those that the reviewer has not opened, and whether there are any. */
function useScans({ customer, kyc }) {
  const { files } = useFiles({ type: 'kyc_documents', parent: customer.id });
  const seen = useStore(seenFiles);
  const documents = new Set(kyc.documents.map((one) => one.id));
  const shown = (files ?? []).filter((file) => file.status === 'ready' && documents.has(file.record_id));
  const seenDocuments = new Set(shown.filter((file) => seen.has(file.id)).map((file) => file.record_id));
  return { any: shown.length > 0, unseen: shown.filter((file) => !seenDocuments.has(file.record_id)), all: shown };
}

/** The scan that a key opens, in a viewer where the keys of the decision work, too. */
function useViewer(scans) {
  const [file, setFile] = useState(null);
  const open = () => setFile(scans.unseen[0] ?? scans.all[0] ?? null);
  const next = () => setFile(fileAfter(scans.all, file));
  const viewer = (keys) => file && html`<${FileViewer} key=${file.id} file=${file} keys=${keys} next=${scans.all.length > 1 && next}
    close=${() => setFile(null)} />`;
  return { open, viewer };
}

/** Why a decision must wait; empty if it need not. */
const obstacleOf = (scans) => (scans.unseen.length ? t('review.open_first') : '');

/** A decision by the form, or by keys: a letter chooses, a digit takes a template, Enter sends. */
function Decide({ load, take, resting, scans }) {
  const { kyc, etag, customer } = load.data;
  const decision = useDecision({
    kyc, etag, customer, reload: load.reload, take, obstacle: ({ choice }) => (givesLevel(choice) ? obstacleOf(scans) : ''),
  });
  const { choose, form } = decision;
  const { open, viewer } = useViewer(scans);
  const picked = useRef(Promise.resolve());
  const pick = (n) => () => {
    picked.current = decision.pick(n);
  };
  const send = useRef(); // of the state that the last key led to
  send.current = form.send;
  const enter = () => picked.current.then(() => requestAnimationFrame(() => {
    const why = scans.any ? obstacleOf(scans) : givesLevel(form.values.choice) && t('review.no_scan_enter');
    if (why) toast(why, 'info');
    else if (!form.busy) send.current();
  }));
  const digits = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [String(i + 1), pick(i + 1)]));
  const letters = { a: () => choose('verified'), r: () => choose('rejected'), n: () => choose('action_required') };
  useKeys({ ...letters, ...digits, o: open, Enter: enter }, resting);
  return html`<div>
    ${viewer(letters)}
    <${Card} title=${t('review.decision')}>
      ${decision.choices.length
        ? html`<${DecisionForm} decision=${decision} keys=${CHOICE_KEYS} />`
        : html`<${Empty} icon="check" title=${t('review.closed')} />`}
    <//>
  </div>`;
}

function Confirm({ load, take, resting, scans }) {
  const box = useRef();
  const { open, viewer } = useViewer(scans);
  const confirm = () => (obstacleOf(scans)
    ? toast(obstacleOf(scans), 'info')
    : box.current.querySelector('.confirm-decision')?.focus());
  const keys = { a: confirm, r: () => box.current.querySelector('textarea')?.focus() };
  useKeys({ ...keys, o: open }, resting);
  return html`<div ref=${box}>${viewer({})}<${Card} title=${t('review.second')}>
    <${PendingDecision} kyc=${load.data.kyc} etag=${load.data.etag} take=${take} obstacle=${() => obstacleOf(scans)} />
  <//></div>`;
}

function Workspace({ load, take }) {
  const { customer, kyc, row } = load.data;
  const resting = useResting();
  const scans = useScans(load.data);
  const other = row?.assignee && row.assignee !== myId();
  return html`
    ${other && html`<${Notice} tone="warn"><${Person} id=${row.assignee} signIn /> ${t('review.works_on_it')}<//>`}
    <div class="review-grid" data-case=${customer.id} data-keys=${resting ? 'rest' : 'on'}>
      <${Evidence} customer=${customer} kyc=${kyc} />
      <div class="review-decision">
        ${kyc.pending_decision
          ? html`<${Confirm} key=${kyc.pending_decision.id} load=${load} take=${take} resting=${resting} scans=${scans} />`
          : html`<${Decide} key=${customer.id} load=${load} take=${take} resting=${resting} scans=${scans} />`}
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
  const waiting = useStore(deferred);
  // The queue may be older than a decision about one of its cases.
  const isOpen = (one) => !(sent.get(one) > queue.data.asked) && !waiting.some(({ key }) => key === one);
  const ids = (queue.data?.data ?? []).map((row) => row.customer_id).filter(isOpen);
  const kept = keptQuery(query);
  const show = (next) => next && go(`/review/${next}${kept}`);
  const step = (by) => () => show(neighbour(ids, id, by));
  /** Sends a decision in ten seconds, unless it is undone, and shows the next case. A refusal is shown with a link to its case. */
  const take = (request, { choice }) => {
    const address = `/review/${id}${kept}`;
    const name = fullName(load.data.customer);
    defer({
      key: id, text: t('review.will_decide', { name, decision: t(`review.do.${choice}`) }),
      run: async (options) => {
        const answer = await request(options);
        sent.set(id, performance.now());
        if (answer?.pending_decision) toast(t('review.sent_second'));
      },
      undone: () => go(address),
      failed: (error) => toast(t('review.refused', { name, why: error.message }), 'bad', address),
    });
    const next = neighbour(ids, id) ?? ids.find((one) => one !== id);
    if (route.get().path !== `/review/${id}`) return; // The user has gone on meanwhile.
    if (next) show(next);
    else go(`/review${kept}`);
  };
  const { run: change } = useAction(async (path, over) => {
    const { cases } = await api.post(`/v1/kyc/cases/${path}`, { customer_ids: [id], ...(over && { take_over: true }) });
    reportOutcomes(cases);
    load.reload();
  });
  useKeys({ j: step(1), k: step(-1), t: () => change('take', false), u: undoLast, '?': () => setHelp(true) });
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
      <${Workspace} key=${id} load=${load} take=${take} />`}<//>
    ${help && html`<${KeysDialog} close=${() => setHelp(false)} />`}`;
}
