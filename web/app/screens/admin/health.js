import { html, useEffect } from '../../lib.js';
import { may } from '../../access.js';
import { api, send } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { loadStyle } from '../../style.js';
import { Badge, Facts } from '../../ui/display.js';
import { ErrorBox, Loaded, Skeleton } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';
import { Table } from '../../ui/table.js';
import { countersOf, parse, remember, requestsOf } from './health_metrics.js';
import { Tiles } from './health_tiles.js';

await loadStyle('admin');

const INTERVAL_MS = 10_000;

/** Calls fn regularly while the page is visible. */
function useInterval(fn) {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && fn(), INTERVAL_MS);
    return () => clearInterval(timer);
  }, [fn]);
}

const CHECK_TONES = { ok: 'good', warning: 'warn' };
const CheckState = ({ state }) => html`
  <${Badge} value=${state === 'ok' ? t('health.healthy') : state} tone=${CHECK_TONES[state] ?? 'bad'} />`;

function Probe({ title, path }) {
  const { data, error, reload } = useLoad(() => api.get(path, undefined, { anonymous: true }), [path]);
  useInterval(reload);
  if (error) {
    return html`<${Card} title=${title} aside=${html`<${Badge} value=${term('health', 'unhealthy')} tone="bad" />`}>
      <${ErrorBox} error=${error} retry=${reload} />
    <//>`;
  }
  if (!data) return html`<${Card} title=${title}><${Skeleton} lines=${2} /><//>`;
  const checks = Object.entries(data.checks ?? {})
    .map(([name, state]) => [term('health_check', name), html`<${CheckState} state=${state} />`]);
  return html`<${Card} title=${title} aside=${html`<${Badge} value=${term('health', data.overall_status ?? 'healthy')} tone="good" />`}>
    <${Facts} list rows=${[...checks, [t('health.at'), dateTime(data.timestamp)]]} />
  <//>`;
}

const nodeColumns = () => [
  {
    key: 'name', label: t('health.node'),
    cell: ({ name, self }) => html`<span class="code">${name}</span>
      ${self && html`<br /><span class="fine">${t('health.this_node')}</span>`}`,
  },
  { key: 'leads', label: t('health.leads'), cell: (row) => row.leads && html`<${Badge} value=${t('health.leads')} tone="good" />` },
  {
    key: 'lease', label: t('health.lease'),
    cell: ({ valid }) => html`<${Badge} value=${t(valid ? 'health.lease_valid' : 'health.lease_ended')} tone=${valid ? 'good' : 'bad'} />`,
  },
  { key: 'lag', num: true, label: t('health.lag'), cell: (row) => `${number(row.lag_ms)} ms` },
  { key: 'started', label: t('health.started'), cell: (row) => dateTime(row.started) },
  {
    key: 'other_settings', label: t('health.other_settings'),
    cell: ({ other_settings: names }) => names?.map((name) => html`<div><${Badge} value=${name} tone="warn" /></div>`),
  },
];

/** The nodes on one database. A lease is valid at the time of the answer, whatever the clock of this machine says. */
function Nodes() {
  const { data, reload } = useLoad(() => api.get('/readyz', undefined, { anonymous: true }), []);
  useInterval(reload);
  if (!data?.nodes) return null;
  const rows = data.nodes.map((node) => ({ ...node, id: node.name + node.started, valid: node.lease_until > data.timestamp }));
  return html`<${Card} class="flush" title=${t('health.nodes')}>
    <${Table} caption=${t('health.nodes')} columns=${nodeColumns()} rows=${rows} />
  <//>`;
}

const requestColumns = () => [
  {
    key: 'endpoint', label: t('health.endpoint'),
    cell: (row) => html`<span class="code">${row.id === 'none' ? t('health.no_endpoint') : row.id}</span>`,
  },
  { key: 'n', num: true, label: t('health.requests'), cell: (row) => number(row.n) },
  { key: 'mean', num: true, label: t('health.mean'), cell: (row) => `${number(row.mean, 1)} ms` },
];

function CounterName({ row }) {
  const labels = row.labels.replace(/[{}"]/g, '').replaceAll('=', ' ');
  return html`<span class="code">${row.name.replace(/^kontor_/, '')}</span>${labels
    && html`<br /><span class="fine code">${labels}</span>`}`;
}

const counterColumns = () => [
  { key: 'name', label: t('health.counter'), cell: (row) => html`<${CounterName} row=${row} />` },
  { key: 'value', num: true, label: t('health.value'), cell: ({ value }) => number(value, Number.isInteger(value) ? 0 : 2) },
];

let history = []; // of the metrics, since the page was loaded

async function loadMetrics() {
  const response = await send('GET', '/metrics', { headers: { Accept: 'text/plain' } });
  const metrics = parse(await response.text());
  history = remember(history, metrics, Date.now());
  return { ...metrics, history };
}

/** Counts the webhooks, for callers who may read them. */
async function loadWebhooks() {
  if (!may('webhooks', 'read')) return null;
  const count = async (status) => (await api.get('/v1/webhooks', { limit: -1, 'search.status': status })).total;
  const [active, halted] = await Promise.all([count('active'), count('paused,disabled')]);
  return { active, halted };
}

const SHOWN = 12; // endpoints

function Metrics() {
  const load = useLoad(loadMetrics);
  const webhooks = useLoad(loadWebhooks);
  useInterval(load.reload);
  return html`<${Loaded} load=${load}>${({ rows, history: samples }) => html`
    <${Tiles} history=${samples} webhooks=${webhooks.data} />
    <${Card} class="flush" title=${t('health.by_endpoint')}>
      <${Table} caption=${t('health.by_endpoint')} columns=${requestColumns()} rows=${requestsOf(rows).slice(0, SHOWN)} />
    <//>
    <${Card} class="flush"><details><summary>${t('health.counters')}</summary>
      <${Table} caption=${t('health.counters')} columns=${counterColumns()} rows=${countersOf(rows)} />
    </details><//>`}<//>`;
}

/** The health of the service as gauges and small charts, refreshed every ten seconds. */
export default function Health() {
  return html`
    <${PageHead} title=${t('nav.health')} note=${t('health.note')} />
    <div class="grid-2">
      <${Probe} title=${t('health.process_runs')} path="/healthz" /><${Probe} title=${t('health.ready')} path="/readyz" />
    </div>
    <${Nodes} />
    <${Metrics} />`;
}
