// The health screen derives its values from the text format of the metrics here. No function needs a browser.

const KEPT = 90; // samples: a quarter of an hour at one each ten seconds

/** Parses the text format of the metrics: {sums: by name over all labels, rows}. */
export function parse(text) {
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

/** Adds a sample to a history and returns the new one. A process that was restarted begins a history of its own. */
export function remember(history, { sums, rows }, at) {
  const buckets = {};
  let failed = 0;
  for (const { name, labels, value } of rows) {
    const limit = name === 'kontor_http_request_seconds_bucket' && /le="([^"]*)"/.exec(labels)?.[1];
    if (limit) buckets[limit] = (buckets[limit] ?? 0) + value;
    if (name === 'kontor_http_requests_total' && labels.includes('status="5xx"')) failed += value;
  }
  const sample = { at, sums, buckets, failed };
  const last = history.at(-1);
  const restarted = last && last.sums.process_start_time_seconds !== sums.process_start_time_seconds;
  return [...(restarted ? [] : history), sample].slice(-KEPT);
}

/** The growth of a counter in each interval of a history, per second. */
export const rates = (history, name) => history.slice(1).map((now, i) => {
  const seconds = (now.at - history[i].at) / 1000;
  return seconds > 0 ? Math.max(0, (now.sums[name] ?? 0) - (history[i].sums[name] ?? 0)) / seconds : 0;
});

/** The value of a gauge in each sample. */
export const values = (history, name) => history.map(({ sums }) => sums[name] ?? 0);

/**
 * The time below which a share of the requests of each interval stayed, in milliseconds: the limit of the histogram's
 * bucket. null for an interval without requests; Infinity beyond the last bucket.
 */
export const quantiles = (history, share) => history.slice(1).map((now, i) => {
  const grown = Object.entries(now.buckets)
    .map(([limit, n]) => [limit === '+Inf' ? Infinity : Number(limit), n - (history[i].buckets[limit] ?? 0)])
    .sort(([a], [b]) => a - b);
  const all = grown.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  return 1000 * grown.find(([, n]) => n >= share * all)[0];
});

/** Requests by endpoint: {id, n, mean}, the most frequent first; mean in milliseconds. */
export function requestsOf(rows) {
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
export const countersOf = (rows) => rows
  .filter(({ name }) => name.startsWith('kontor_') && !name.startsWith('kontor_http_request_seconds'))
  .filter(({ name, labels }) => !/_(bucket|sum|vmrange)$/.test(name) && !labels.includes('vmrange'))
  .filter(({ value, labels }) => value || !labels)
  .map((row) => ({ ...row, id: row.name + row.labels }));
