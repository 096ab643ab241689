import { html } from '../../lib.js';
import { ago, dateTime, number } from '../../format.js';
import { t } from '../../i18n.js';
import { Badge } from '../../ui/display.js';
import { quantiles, rates, values } from './health_metrics.js';

const MIB = 1 << 20;
const WIDTH = 100;
const HEIGHT = 28;

/**
 * The line of a history with its axes, and the same in words. Points are numbers; null and Infinity are gaps; aim: the value that the
 * line should stay below.
 */
function Spark({ points, label, text, aim }) {
  const shown = points.map((value, i) => [i, value]).filter(([, value]) => Number.isFinite(value));
  const most = Math.max(1e-9, aim ?? 0, ...shown.map(([, value]) => value));
  const x = (i) => (WIDTH * i) / Math.max(1, points.length - 1);
  const y = (value) => HEIGHT - 1 - ((HEIGHT - 2) * value) / most;
  const line = shown.map(([i, value]) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const all = shown.map(([, value]) => value);
  const alternative = all.length
    ? t('health.history', { what: label, least: text(Math.min(...all)), most: text(Math.max(...all)), n: all.length })
    : t('health.no_history', { what: label });
  return html`<div class="spark-box">
  <svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${alternative}>
    ${shown.length > 1 && html`<polygon points=${`${x(shown[0][0])},${HEIGHT} ${line} ${x(shown.at(-1)[0])},${HEIGHT}`} />
      <polyline points=${line} vector-effect="non-scaling-stroke" />`}
    ${aim && html`<line class="aim" x1="0" x2=${WIDTH} y1=${y(aim)} y2=${y(aim)} vector-effect="non-scaling-stroke" />`}
  </svg>
  <p class="spark-axis num" aria-hidden="true"><span>${all.length > 0 && text(most)}</span><span>${text(0)}</span></p>
  <p class="spark-time">
    <span>${t('health.axis')}</span>${aim && html`<span class="spark-aim">${t('health.aim', { value: text(aim) })}</span>`}
  </p>
  </div>`;
}

/** How full something is, as a bar with the share in words. */
function Gauge({ part, whole, label }) {
  const share = whole > 0 ? Math.min(100, Math.round((100 * part) / whole)) : 0;
  return html`<div class=${`gauge${share >= 80 ? ' high' : ''}`} role="meter" aria-label=${label} aria-valuenow=${share} aria-valuemin="0"
    aria-valuemax="100"><span style=${{ width: `${share}%` }}></span></div>`;
}

const Tile = ({ title, value, bad, note, children }) => html`<section class=${`tile${bad ? ' bad' : ''}`}>
  <h3>${title}${bad && html` <${Badge} value=${bad} tone="bad" />`}</h3>
  <p class="tile-value num">${value ?? '–'}</p>
  ${children}
  ${note && html`<p class="fine">${note}</p>`}
</section>`;

const perSecond = (value) => t('health.per_second', { value: number(value, value > 0 && value < 10 ? 1 : 0) });
const milliseconds = (value) => (value === Infinity ? t('health.beyond') : `${number(value, value > 0 && value < 10 ? 1 : 0)} ms`);
const mebibytes = (bytes) => `${number(bytes / MIB, 0)} MiB`;
const AIM_MS = 300; // of an answer, as make bench-lists measures it
const last = (points) => points.at(-1);

function Requests({ history }) {
  const points = rates(history, 'kontor_http_request_seconds_count');
  const failed = history.length > 1 ? last(history).failed - history.at(-2).failed : 0;
  const total = number(last(history).sums.kontor_http_request_seconds_count ?? 0);
  return html`<${Tile} title=${t('health.requests')} value=${points.length ? perSecond(last(points)) : null}
    bad=${failed > 0 && t('health.failed', { n: failed })} note=${t('health.total', { total })}>
    <${Spark} points=${points} label=${t('health.requests')} text=${perSecond} />
  <//>`;
}

function Latency({ history }) {
  const points = quantiles(history, 0.95);
  const latest = points.findLast((value) => value !== null);
  return html`<${Tile} title=${t('health.latency')}
    value=${latest === undefined ? null : t('health.below', { value: milliseconds(latest) })}
    note=${t('health.latency_note')}>
    <${Spark} points=${points} label=${t('health.latency')} text=${milliseconds} aim=${AIM_MS} />
  <//>`;
}

function Writer({ history }) {
  const { sums } = last(history);
  const points = rates(history, 'kontor_store_commits_total');
  const sync = milliseconds(1000 * (sums.kontor_store_syncs_last_seconds ?? 0));
  return html`<${Tile} title=${t('health.writer')} value=${points.length ? perSecond(last(points)) : null}
    bad=${sums.kontor_store_stalled > 0 && t('health.stalled')}
    note=${t('health.writer_note', { waiting: number(sums.kontor_store_queue_length ?? 0), sync })}>
    <${Spark} points=${points} label=${t('health.writer')} text=${perSecond} />
  <//>`;
}

function Disk({ history }) {
  const { sums } = last(history);
  const { kontor_store_log_bytes: used = 0, kontor_store_log_limit_bytes: limit = 0 } = sums;
  if (!limit) return null; // the log of PostgreSQL is that of its server
  return html`<${Tile} title=${t('health.disk')} value=${mebibytes(used)} bad=${sums.kontor_store_log_over_limit > 0 && t('health.over')}
    note=${t('health.disk_note', { limit: mebibytes(limit) })}>
    <${Gauge} part=${used} whole=${limit} label=${t('health.disk')} />
  <//>`;
}

function Queue({ history }) {
  const { sums } = last(history);
  const points = values(history, 'kontor_queue_depth');
  const dead = sums.kontor_queue_dead_letters ?? 0;
  return html`<${Tile} title=${t('health.queue')} value=${number(last(points))} bad=${dead > 0 && t('health.dead', { n: dead })}
    note=${t('health.queue_note', { oldest: number(sums.kontor_queue_oldest_seconds ?? 0) })}>
    <${Spark} points=${points} label=${t('health.queue')} text=${number} />
  <//>`;
}

function Streams({ history }) {
  const points = values(history, 'kontor_streams_open');
  return html`<${Tile} title=${t('health.streams')} value=${number(last(points))}
    note=${t('health.streams_note', { connections: number(last(history).sums.kontor_connections_open ?? 0) })}>
    <${Spark} points=${points} label=${t('health.streams')} text=${number} />
  <//>`;
}

function Memory({ history }) {
  const points = values(history, 'process_resident_memory_bytes');
  return html`<${Tile} title=${t('health.memory')} value=${last(points) ? mebibytes(last(points)) : null}
    note=${t('health.memory_note', { n: number(last(history).sums.go_goroutines ?? 0) })}>
    <${Spark} points=${points} label=${t('health.memory')} text=${mebibytes} />
  <//>`;
}

const percent = (value) => `${number(100 * value, 0)} %`;

function Processor({ history }) {
  const points = rates(history, 'process_cpu_seconds_total');
  const { sums } = last(history);
  return html`<${Tile} title=${t('health.cpu')} value=${points.length ? percent(last(points)) : null}
    note=${t('health.since', { at: dateTime(new Date(1000 * (sums.process_start_time_seconds ?? 0)).toISOString()) })}>
    <${Spark} points=${points} label=${t('health.cpu')} text=${percent} />
  <//>`;
}

function Backup({ history }) {
  const { sums } = last(history);
  const { kontor_backup_state_timestamp_seconds: at = 0, kontor_backup_failing: failing = 0, kontor_backup_bytes_total: bytes = 0 } = sums;
  const state = at > 0 ? new Date(1000 * at).toISOString() : '';
  return html`<${Tile} title=${t('health.backup')} value=${state ? ago(state) : t('health.no_backup')}
    bad=${failing > 0 && t('health.failing')}
    note=${state ? t('health.backup_note', { bytes: mebibytes(bytes) }) : t('health.no_backup_note')} />`;
}

function Webhooks({ webhooks }) {
  if (!webhooks) return null;
  return html`<${Tile} title=${t('health.webhooks')} value=${number(webhooks.active)}
    bad=${webhooks.halted > 0 && t('health.halted', { n: webhooks.halted })}
    note=${html`<a href="/admin/webhooks">${t('health.webhooks_link')}</a>`} />`;
}

/** The gauges and small charts. */
export const Tiles = ({ history, webhooks }) => html`<div class="tiles">
  <${Requests} history=${history} /><${Latency} history=${history} /><${Writer} history=${history} /><${Disk} history=${history} />
  <${Queue} history=${history} /><${Streams} history=${history} /><${Memory} history=${history} /><${Processor} history=${history} />
  <${Backup} history=${history} /><${Webhooks} webhooks=${webhooks} />
</div>`;
