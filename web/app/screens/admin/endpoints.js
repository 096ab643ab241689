import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Table } from '../../ui/data.js';
import { Empty, Loaded } from '../../ui/feedback.js';
import { Filters, Search } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

/** All endpoints, whether the server gives them as a list of the shared shape or plainly. */
export async function listEndpoints() {
  const answer = await api.get('/v1/rbac/endpoints', { limit: 100 });
  if (Array.isArray(answer)) return answer;
  const rows = [...(answer.data ?? answer.endpoints ?? [])];
  while (answer.has_more && rows.length < answer.total) {
    const page = await api.get('/v1/rbac/endpoints', { limit: 100, offset: rows.length });
    if (!page.data.length) break;
    rows.push(...page.data);
  }
  return rows;
}

/** An endpoint as grants and rate limits name it: `GET /v1/customers/{id}`. */
export const endpointName = (row) => row.endpoint ?? `${row.method} ${row.path}`;

/** An endpoint's name with its method set off. */
export function EndpointName({ name }) {
  const [method, path] = name.split(' ');
  return html`<span class="endpoint"><span class=${`method ${method.toLowerCase()}`}>${method}</span> <span class="code">${path}</span></span>`;
}

const accessText = (row) => (typeof row.access === 'string' ? row.access : [row.access?.rec_type, row.access?.permission].filter(Boolean).join(' · ') || row.rec_type || '');

/** The table of endpoints that drives the whole server. */
export default function Endpoints() {
  const [text, setText] = useState('');
  const load = useLoad(listEndpoints);
  const columns = [
    { key: 'name', label: t('grants.endpoint'), cell: (row) => html`<${EndpointName} name=${endpointName(row)} />` },
    { key: 'summary', label: t('endpoints.summary'), cell: (row) => row.summary },
    { key: 'access', label: t('endpoints.access'), cell: (row) => html`<${Badge} value=${accessText(row)} tone="none" />` },
    { key: 'limit', label: t('endpoints.rate'), cell: (row) => row.rate_class ?? row.limit ?? '' },
  ];
  const fits = (row) => `${endpointName(row)} ${row.summary} ${row.tag}`.toLowerCase().includes(text.toLowerCase());
  return html`
    <${PageHead} title=${t('nav.endpoints')} note=${html`${t('endpoints.note')} <a href="/docs">${t('door.api')}</a>`} />
    <${Filters}><${Search} value=${text} onSearch=${setText} /><//>
    <section class="card flush" aria-label=${t('nav.endpoints')}><${Loaded} load=${load} lines=${10}>${(rows) => {
      const found = rows.filter(fits).map((row) => ({ ...row, id: endpointName(row) }));
      return found.length ? html`<${Table} caption=${t('nav.endpoints')} columns=${columns} rows=${found} />` : html`<${Empty} icon="search" title=${t('list.no_match')} />`;
    }}<//></section>`;
}
