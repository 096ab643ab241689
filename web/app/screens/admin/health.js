import { html, useEffect } from '../../lib.js';
import { api, send } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Facts, Table } from '../../ui/data.js';
import { ErrorBox, Loaded, Skeleton } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';

const EVERY_MS = 10_000;
const MIB = 1 << 20;

/** Reads the text format of the metrics into name → sum over labels, and the rows themselves. */
function parse(text) {
  const sums = {};
  const rows = [];
  for (const line of text.split('\n')) {
    const found = /^([a-zA-Z_:][\w:]*)(\{.*\})?\s+(\S+)$/.exec(line);
    if (!found) continue;
    rows.push({ name: found[1], labels: found[2] ?? '', value: Number(found[3]) });
    sums[found[1]] = (sums[found[1]] ?? 0) + Number(found[3]);
  }
  return { sums, rows };
}

function Probe({ title, path }) {
  const load = useLoad(() => api.get(path, undefined, { open: true }), [path]);
  useTick(load.reload);
  const failed = load.error;
  return html`<${Card} title=${title} aside=${(load.data || failed) && html`<${Badge} value=${term('health', failed ? 'unhealthy' : load.data.overall_status ?? 'healthy')} tone=${failed ? 'bad' : 'good'} />`}>
    ${failed ? html`<${ErrorBox} error=${failed} retry=${load.reload} />` : !load.data ? html`<${Skeleton} lines=${2} />` : html`<${Facts} list rows=${[...Object.entries(load.data.checks ?? {}).map(([name, state]) => [term('health_check', name), html`<${Badge} value=${state === 'ok' ? t('health.healthy') : state} tone=${state === 'ok' ? 'good' : state === 'warning' ? 'warn' : 'bad'} />`]), [t('health.at'), dateTime(load.data.timestamp)]]} />`}
  <//>`;
}

function useTick(fn) {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && fn(), EVERY_MS);
    return () => clearInterval(timer);
  }, [fn]);
}

/** What the metrics say of each endpoint: {id, n, mean}, the busiest first; mean in milliseconds. */
function requests(rows) {
  const found = new Map();
  for (const { name, labels, value } of rows) {
    const part = /^kontor_http_request_seconds_(count|sum)$/.exec(name)?.[1];
    const id = /endpoint="([^"]*)"/.exec(labels)?.[1];
    if (part && id) found.set(id, { ...found.get(id), [part]: value });
  }
  return [...found].map(([id, { count = 0, sum = 0 }]) => ({ id, n: count, mean: count ? (1000 * sum) / count : 0 })).sort((a, b) => b.n - a.n);
}

const isOther = (row) => row.name.startsWith('kontor_') && !row.name.startsWith('kontor_http_request_seconds') && !/_(bucket|sum|vmrange)$/.test(row.name) && !row.labels.includes('vmrange');

function Metrics() {
  const load = useLoad(async () => parse(await (await send('GET', '/metrics', { headers: { Accept: 'text/plain' } })).text()));
  useTick(load.reload);
  const columns = [
    { key: 'endpoint', label: t('health.endpoint'), cell: (row) => html`<span class="code">${row.id === 'none' ? t('health.no_endpoint') : row.id}</span>` },
    { key: 'n', num: true, label: t('health.requests'), cell: (row) => number(row.n) },
    { key: 'mean', num: true, label: t('health.mean'), cell: (row) => `${number(row.mean, 1)} ms` },
  ];
  const others = [{ key: 'name', label: t('health.counter'), cell: (row) => html`<span class="code">${row.name.replace(/^kontor_/, '')}</span>${row.labels && html`<br /><span class="fine code">${row.labels.replace(/[{}"]/g, '').replaceAll('=', ' ')}</span>`}` },
    { key: 'value', num: true, label: t('health.value'), cell: (row) => number(row.value, Number.isInteger(row.value) ? 0 : 2) }];
  return html`<${Loaded} load=${load}>${({ sums, rows }) => html`<div class="grid-main metrics">
    <${Card} class="flush" title=${t('health.by_endpoint')}><${Table} caption=${t('health.by_endpoint')} columns=${columns} rows=${requests(rows)} /><//>
    <div class="stack">
      <${Card} title=${t('health.process')}><${Facts} list rows=${[
        [t('health.requests'), number(sums.kontor_http_request_seconds_count ?? 0)],
        [t('health.memory'), sums.process_resident_memory_bytes && `${number(sums.process_resident_memory_bytes / MIB, 1)} MiB`],
        [t('health.goroutines'), sums.go_goroutines && number(sums.go_goroutines)],
        sums.process_open_fds && [t('health.files'), number(sums.process_open_fds)],
        [t('health.cpu'), sums.process_cpu_seconds_total && `${number(sums.process_cpu_seconds_total, 1)} s`],
      ]} /><//>
      <${Card} class="flush" title=${t('health.counters')}><${Table} caption=${t('health.counters')} columns=${others} rows=${rows.filter((row) => isOther(row) && (row.value || !row.labels)).map((row) => ({ ...row, id: row.name + row.labels }))} /><//>
    </div>
  </div>`}<//>`;
}

/** How the service itself is: read anew every ten seconds. */
export default function Health() {
  return html`
    <${PageHead} title=${t('nav.health')} note=${t('health.note')} />
    <div class="grid-2"><${Probe} title=${t('health.process_runs')} path="/healthz" /><${Probe} title=${t('health.ready')} path="/readyz" /></div>
    <${Metrics} />`;
}
