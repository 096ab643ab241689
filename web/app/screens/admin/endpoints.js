import { html, useState } from '../../lib.js';
import { api } from '../../api.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Table } from '../../ui/data.js';
import { Empty, Loaded } from '../../ui/feedback.js';
import { Filters, Search } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

/** All endpoints. */
export async function listEndpoints() {
  const rows = [];
  for (;;) {
    const page = await api.get('/v1/rbac/endpoints', { limit: 100, offset: rows.length });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

/** An endpoint's name with its method set off. */
export function EndpointName({ name }) {
  const [method, path] = name.split(' ');
  return html`<span class="endpoint"><span class=${`method ${method.toLowerCase()}`}>${method}</span> <span class="code">${path}</span></span>`;
}

/** Who comes in, in words: everybody, an application, whoever is signed in, or whoever holds a permission. */
function accessText(access) {
  const [kind, right] = access.split(' ');
  if (!right) return html`<${Badge} value=${term('endpoint_access', kind.replace('-', '_'))} tone=${kind === 'public' ? 'warn' : 'none'} />`;
  const [type, permission] = right.split(':');
  return html`<span class="right">${term('rec_type', type)} <span class="none">${term('permission', permission)}</span></span>`;
}

/** The table of endpoints that drives the whole server. */
export default function Endpoints() {
  const [text, setText] = useState('');
  const load = useLoad(listEndpoints);
  const columns = [
    { key: 'name', label: t('grants.endpoint'), cell: (row) => html`<${EndpointName} name=${row.endpoint} />` },
    { key: 'summary', label: t('endpoints.summary'), cell: (row) => row.summary },
    { key: 'access', label: t('endpoints.access'), cell: (row) => accessText(row.access) },
    { key: 'limit', label: t('endpoints.rate'), minor: true, cell: (row) => term('rate_class', row.rate_limit) },
  ];
  const fits = (row) => `${row.endpoint} ${row.summary} ${row.tag}`.toLowerCase().includes(text.toLowerCase());
  return html`
    <${PageHead} title=${t('nav.endpoints')} note=${html`${t('endpoints.note')} <a href="/docs">${t('door.api')}</a>`} />
    <${Filters}><${Search} value=${text} onSearch=${setText} /><//>
    <section class="card flush" aria-label=${t('nav.endpoints')}><${Loaded} load=${load} lines=${10}>${(rows) => {
      const found = rows.filter(fits).map((row) => ({ ...row, id: row.endpoint }));
      return found.length ? html`<${Table} caption=${t('nav.endpoints')} columns=${columns} rows=${found} />` : html`<${Empty} icon="search" title=${t('list.no_match')} />`;
    }}<//></section>`;
}
