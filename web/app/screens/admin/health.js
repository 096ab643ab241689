import { html, useEffect } from '../../lib.js';
import { api, send } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Facts } from '../../ui/display.js';
import { ErrorBox, Loaded, Skeleton } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';
import { Table } from '../../ui/table.js';

const INTERVAL_MS = 10_000;
const MIB = 1 << 20;

/** Calls fn regularly while the page is visible. */
function useInterval(fn) {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && fn(), INTERVAL_MS);
    return () => clearInterval(timer);
  }, [fn]);
}

/** Parses the text format of the metrics: {sums: by name over all labels, rows}. */
function parse(text) {
  const sums = {};
  const rows = [];
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^([a-zA-Z_:][\w:]*)(\{.*\})?\s+(\S+)$/.exec(line) ?? [];
    if (!name) continue;
    rows.push({ name, labels, value: Number(value) });
    sums[name] = (sums[name] ?? 0) + Number(value);
  }
  return { sums, rows };
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

/** Requests by endpoint: {id, n, mean}, the most frequent first; mean in milliseconds. */
function requestsOf(rows) {
  const found = new Map();
  for (const { name, labels, value } of rows) {
    const part = /^kontor_http_request_seconds_(count|sum)$/.exec(name)?.[1];
    const id = /endpoint="([^"]*)"/.exec(labels)?.[1];
    if (part && id) found.set(id, { ...found.get(id), [part]: value });
  }
  return [...found]
    .map(([id, { count = 0, sum = 0 }]) => ({ id, n: count, mean: count ? (1000 * sum) / count : 0 }))
    .sort((a, b) => b.n - a.n);
}

/** Kontor's own counters, without the parts of histograms and without labelled counters that are zero. */
const countersOf = (rows) => rows
  .filter(({ name }) => name.startsWith('kontor_') && !name.startsWith('kontor_http_request_seconds'))
  .filter(({ name, labels }) => !/_(bucket|sum|vmrange)$/.test(name) && !labels.includes('vmrange'))
  .filter(({ value, labels }) => value || !labels)
  .map((row) => ({ ...row, id: row.name + row.labels }));

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

const processFacts = (sums) => [
  [t('health.requests'), number(sums.kontor_http_request_seconds_count ?? 0)],
  [t('health.memory'), sums.process_resident_memory_bytes && `${number(sums.process_resident_memory_bytes / MIB, 1)} MiB`],
  [t('health.goroutines'), sums.go_goroutines && number(sums.go_goroutines)],
  sums.process_open_fds && [t('health.files'), number(sums.process_open_fds)],
  [t('health.cpu'), sums.process_cpu_seconds_total && `${number(sums.process_cpu_seconds_total, 1)} s`],
];

async function loadMetrics() {
  const response = await send('GET', '/metrics', { headers: { Accept: 'text/plain' } });
  return parse(await response.text());
}

function Metrics() {
  const load = useLoad(loadMetrics);
  useInterval(load.reload);
  return html`<${Loaded} load=${load}>${({ sums, rows }) => html`<div class="grid-main metrics">
    <${Card} class="flush" title=${t('health.by_endpoint')}>
      <${Table} caption=${t('health.by_endpoint')} columns=${requestColumns()} rows=${requestsOf(rows)} />
    <//>
    <div class="stack">
      <${Card} title=${t('health.process')}><${Facts} list rows=${processFacts(sums)} /><//>
      <${Card} class="flush" title=${t('health.counters')}>
        <${Table} caption=${t('health.counters')} columns=${counterColumns()} rows=${countersOf(rows)} />
      <//>
    </div>
  </div>`}<//>`;
}

/** The health and the metrics of the service, refreshed every ten seconds. */
export default function Health() {
  return html`
    <${PageHead} title=${t('nav.health')} note=${t('health.note')} />
    <div class="grid-2">
      <${Probe} title=${t('health.process_runs')} path="/healthz" /><${Probe} title=${t('health.ready')} path="/readyz" />
    </div>
    <${Nodes} />
    <${Metrics} />`;
}
