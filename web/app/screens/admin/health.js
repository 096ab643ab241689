import { html, useEffect } from '../../lib.js';
import { api, send } from '../../api.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Facts } from '../../ui/data.js';
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
    ${failed ? html`<${ErrorBox} error=${failed} retry=${load.reload} />` : !load.data ? html`<${Skeleton} lines=${2} />` : html`<${Facts} rows=${[...Object.entries(load.data.checks ?? {}).map(([name, state]) => [name, html`<${Badge} value=${state} tone=${state === 'ok' ? 'good' : 'bad'} />`]), [t('health.at'), dateTime(load.data.timestamp)]]} />`}
  <//>`;
}

function useTick(fn) {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && fn(), EVERY_MS);
    return () => clearInterval(timer);
  }, [fn]);
}

function Metrics() {
  const load = useLoad(async () => parse(await (await send('GET', '/metrics', { headers: { Accept: 'text/plain' } })).text()));
  useTick(load.reload);
  return html`<${Loaded} load=${load}>${({ sums, rows }) => {
    const own = rows.filter((row) => row.name.startsWith('kontor_') && !/_(bucket|sum|vmrange)$/.test(row.name) && !row.labels.includes('vmrange'));
    return html`<div class="grid-2">
      <${Card} title=${t('health.process')}><${Facts} list rows=${[
        [t('health.memory'), sums.process_resident_memory_bytes && `${number(sums.process_resident_memory_bytes / MIB, 1)} MiB`],
        [t('health.goroutines'), sums.go_goroutines && number(sums.go_goroutines)],
        [t('health.files'), sums.process_open_fds && number(sums.process_open_fds)],
        [t('health.cpu'), sums.process_cpu_seconds_total && `${number(sums.process_cpu_seconds_total, 1)} s`],
      ]} /><//>
      <${Card} title=${t('health.counters')}>${own.length ? html`<div class="table-box metrics" tabindex="0" role="region" aria-label=${t('health.counters')}><table class="data"><caption class="sr">${t('health.counters')}</caption><thead><tr><th scope="col">${t('health.counter')}</th><th scope="col" class="num">${t('health.value')}</th></tr></thead>
        <tbody>${own.slice(0, 60).map((row) => html`<tr key=${row.name + row.labels}><td class="code">${row.name}${row.labels && html`<br /><span class="fine">${row.labels}</span>`}</td><td class="num" data-label=${t('health.value')}>${number(row.value, Number.isInteger(row.value) ? 0 : 2)}</td></tr>`)}</tbody></table></div>` : html`<p class="none">–</p>`}<//>
    </div>`;
  }}<//>`;
}

/** How the service itself is: read anew every ten seconds. */
export default function Health() {
  return html`
    <${PageHead} title=${t('nav.health')} note=${t('health.note')} />
    <div class="grid-2"><${Probe} title=${t('health.process_runs')} path="/healthz" /><${Probe} title=${t('health.ready')} path="/readyz" /></div>
    <${Metrics} />`;
}
