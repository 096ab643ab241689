import { html, useRef } from '../lib.js';
import { myId } from '../access.js';
import { api } from '../api.js';
import { country } from '../countries.js';
import { date, percent } from '../format.js';
import { t, term } from '../i18n.js';
import { useList } from '../list.js';
import { useLoad } from '../load.js';
import { Compare, MarkedName } from '../ui/compare.js';
import { When } from '../ui/display.js';
import { Empty, Loaded, Notice, toast } from '../ui/feedback.js';
import { Filter, Filters, optionsOf } from '../ui/filters.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { useKeys } from '../ui/keys.js';
import { Card, PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { RecordList } from '../ui/record_list.js';
import { HitStatus } from './hits_of_case.js';
import { useResting } from './review_keys.js';

const STATUSES = ['open', 'pending', 'dismissed', 'confirmed', 'closed'];
const REASONS = ['other_birth', 'other_country', 'other_name', 'known_person', 'listed_person'];
const NIL = '00000000-0000-0000-0000-000000000000';

const columns = () => [
  { key: 'subject', label: t('screening.subject'), sort: 'subject_name', cell: (row) => html`<bdi>${row.subject_name}</bdi>` },
  { key: 'type', minor: true, label: t('field.type'), cell: (row) => t(`screening.subject.${row.subject_type}`) },
  {
    key: 'entry', label: t('screening.entry'), sort: 'entry_name',
    cell: (row) => (row.cause ? t(`screening.doubt.${row.cause}`) : html`<bdi class="listed">${row.entry_name}</bdi>`),
  },
  { key: 'list', minor: true, label: t('screening.list'), sort: 'list', cell: (row) => row.list },
  { key: 'score', label: t('screening.score'), sort: 'score', cell: (row) => `${percent(row.score, 1)} %` },
  { key: 'status', label: t('field.state'), sort: 'status', cell: (row) => html`<${HitStatus} of=${row} />` },
  {
    key: 'created_at', minor: true, label: t('screening.since'), sort: 'created_at',
    cell: (row) => html`<${When} at=${row.created_at} />`,
  },
];

/** The hits: records whose names are like those of listed entries. */
export function ScreeningHits() {
  const list = useList('/v1/screening/hits', { filters: ['status'], sort: '-created_at' });
  return html`
    <${Filters}><${Filter} label=${t('field.state')} value=${list.state.status}
      options=${optionsOf(STATUSES, (value) => term('hit_status', value))}
      onChange=${(value) => list.set({ status: value })} /><//>
    <${RecordList} list=${list} title=${t('screening.hits')} columns=${columns()} link=${(row) => `/screening/hits/${row.id}`}
      nameOf=${(row) => row.subject_name}
      empty=${html`<${Empty} icon="check" title=${t('screening.no_hits')}>${t('screening.no_hits_text')}<//>`} />`;
}

/** The comparison with the present identity, which stands beside that of the hit. */
const Later = ({ later }) => html`<${Notice} tone="warn" title=${t('screening.later')}>
  <bdi>${later.subject.name}</bdi> ${date(later.subject.date_of_birth)}: ${later.score > 0
  ? t('screening.alike', { n: percent(later.score, 1) }) : t('screening.not_alike')}. ${t('screening.later_text')}<//>`;

function BothSides({ hit }) {
  const { subject, entry } = hit;
  const parts = hit.matched.map((part) => [part.query, part.entry]);
  const listed = entry ?? { names: [hit.entry_name], programs: [], dates_of_birth: [], countries: [] };
  const others = listed.names.filter((name) => name !== hit.entry_name);
  const places = (codes) => codes.map(country).join(', ');
  const name = html`<${MarkedName} name=${subject.name} parts=${parts} />`;
  return html`<${Card} title=${t('screening.both_sides')}>
    ${hit.cause && html`<${Notice} tone="warn" title=${t(`screening.doubt.${hit.cause}`)}>${t('screening.doubt_text')}<//>`}
    ${hit.escalation && html`<${Notice} tone="warn">${t(`screening.escalation.${hit.escalation}`)}<//>`}
    ${hit.later && html`<${Later} later=${hit.later} />`}
    ${!entry && !hit.cause && html`<${Notice} tone="info">${t('screening.not_listed')}<//>`}
    <${Compare} caption=${t('screening.both_sides')} heads=${[t(`screening.subject.${hit.subject_type}`), hit.list]} rows=${[
      [t('field.name'), hit.customer_id ? html`<a href=${`/customers/${hit.customer_id}`}>${name}</a>` : name,
        html`<${MarkedName} name=${hit.entry_name} parts=${parts.map(([own, other]) => [other, own])} />`],
      [t('screening.other_names'), '', others.length > 0 && others.map((one) => html`<div key=${one}><bdi>${one}</bdi></div>`)],
      [t('field.type'), subject.type && term('customer_type', subject.type), listed.type && term('customer_type', listed.type)],
      [t('field.date_of_birth'), date(subject.date_of_birth), listed.dates_of_birth.join(', ')],
      [t('field.country'), places(subject.countries), places(listed.countries)],
      [t('screening.programs'), '', listed.programs.join(', ')],
      [t('screening.source_id'), '', hit.source_id],
    ]} />
  <//>`;
}

const History = ({ hit }) => html`<${Card} title=${t('screening.history')}><ul class="items">${hit.history.map((one, i) => html`
  <li key=${i}><div class="grow two-lines">
    <span>${t(`screening.action.${one.action}`)}${one.reason && html`: <bdi>${one.reason}</bdi>`}</span>
    <span><${When} at=${one.changed_at} exact />${one.changed_by !== NIL && html` · <${Person} id=${one.changed_by} />`}</span>
  </div><${HitStatus} of=${one} /></li>`)}</ul><//>`;

/** The decisions that a reviewer can make about a hit in its state. The proposer of one can only take it back. */
const choicesOf = ({ status, decision, proposed_by: by }) => ({
  open: ['dismissed', 'confirmed'], pending: by === myId() ? ['open'] : [decision, 'open'], dismissed: ['confirmed', 'open'],
  confirmed: ['dismissed'],
}[status] ?? []);

function Decision({ hit, etag, reload }) {
  const choices = choicesOf(hit);
  const resting = useResting();
  const form = useForm({ decision: choices[0] ?? '', reason: '' }, async (values) => {
    const after = await api.post(`/v1/screening/hits/${hit.id}/decide`, values, { ifMatch: etag });
    toast(t(after.status === 'pending' ? 'screening.sent_second' : 'saved'));
    reload();
  });
  const send = useRef();
  send.current = form.send;
  const choose = (value) => () => choices.includes(value) && form.set('decision', value);
  const template = (i) => () => form.set('reason', t(`screening.reason.${REASONS[i]}`));
  const digits = Object.fromEntries(REASONS.map((_, i) => [String(i + 1), template(i)]));
  useKeys({ d: choose('dismissed'), c: choose('confirmed'), ...digits, Enter: () => requestAnimationFrame(() => send.current()) }, resting);
  if (!choices.length) {
    return html`<${Card} title=${t('screening.decision')}><${Empty} icon="check" title=${t('screening.closed')} /><//>`;
  }
  return html`<${Card} title=${t('screening.decision')}>
    ${hit.status === 'pending' && html`<${Notice} title=${t('screening.waits')}>
      <${Person} id=${hit.proposed_by} />: ${t(`screening.do.${hit.decision}`)}. <bdi>${hit.reason}</bdi><//>`}
    <${Form} form=${form}>
      <${Field} form=${form} name="decision" label=${t('screening.decision')}
        options=${choices.map((value) => [value, t(`screening.do.${value}`)])} />
      <div class="hit-reasons">${REASONS.map((name, i) => html`<button key=${name} type="button" class="quiet small" onClick=${template(i)}>
        <kbd>${i + 1}</kbd> ${t(`screening.reason.${name}`)}</button>`)}</div>
      <${Field} form=${form} name="reason" label=${t('screening.why')} rows=${3} maxlength="1000" required
        hint=${t('screening.reason_hint')} />
      <${Actions} form=${form} label=${t('screening.decide')} />
    <//>
    <p class="fine">${t('screening.keys')}</p>
  <//>`;
}

/** One hit: both sides, the decision and the history. */
export function ScreeningHit({ id }) {
  const load = useLoad(() => api.withETag(`/v1/screening/hits/${id}`), [id]);
  const hit = load.data?.record;
  const title = hit?.subject_name ?? t('screening.one');
  return html`
    <${PageHead} title=${html`<bdi>${title}</bdi>`} plainTitle=${title} back=${['/screening', t('screening.hits')]}
      note=${hit && html`<${HitStatus} of=${hit} /> ${t('screening.alike', { n: percent(hit.score, 1) })}`} />
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="review-grid">
      <div class="stack"><${BothSides} hit=${hit} /><${History} hit=${hit} /></div>
      <div class="review-decision"><${Decision} key=${load.data.etag} hit=${hit} etag=${load.data.etag} reload=${load.reload} /></div>
    </div>`}<//>`;
}
