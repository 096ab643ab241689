import { html, useState } from '../../lib.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Copy } from '../../ui/display.js';
import { Loaded } from '../../ui/feedback.js';
import { Filters, Search } from '../../ui/filters.js';
import { ListTools } from '../../ui/list_tools.js';
import { PageHead } from '../../ui/page.js';
import { NoMatch } from '../../ui/record_list.js';
import { Table } from '../../ui/table.js';
import { EndpointName, groupName, listEndpoints, summaryOf } from './endpoint_list.js';

/** The access rule of an endpoint in words: a permission, or a kind of caller. */
function AccessRule({ rule }) {
  const [kind, right] = rule.split(' ');
  if (!right) {
    return html`<${Badge} value=${term('endpoint_access', kind.replace('-', '_'))} tone=${kind === 'public' ? 'warn' : 'none'} />`;
  }
  const [type, permission] = right.split(':');
  return html`<span class="right">${term('rec_type', type)} <span class="none">${term('permission', permission)}</span></span>`;
}

const columns = () => [
  { key: 'name', label: t('grants.endpoint'), cell: (row) => html`<${EndpointName} name=${row.endpoint} />` },
  { key: 'summary', label: t('endpoints.summary'), cell: summaryOf },
  { key: 'access', label: t('endpoints.access'), cell: (row) => html`<${AccessRule} rule=${row.access} />` },
  { key: 'limit', wide: true, minor: true, label: t('endpoints.rate'), cell: (row) => term('rate_class', row.rate_limit) },
];

const GO_GET = 'GONOSUMDB=kontor.local go get kontor.local/client@latest';

/** The lines that install the clients of the API from this service. */
const installLines = ({ origin }) => [
  { id: 'npm', name: 'TypeScript', line: `npm install ${origin}/sdk/kontor-client.tgz` },
  { id: 'go', name: 'Go', line: `GOPROXY=${origin}/sdk/go,https://proxy.golang.org ${GO_GET}` },
  { id: 'browser', name: t('endpoints.browser'), line: `import { Kontor } from '${origin}/sdk/kontor-client.js';` },
];

const Clients = () => html`<section class="card" aria-labelledby="clients-title">
  <h2 id="clients-title">${t('endpoints.clients')}</h2>
  <p class="note">${t('endpoints.clients_note')}</p>
  <dl class="facts list">${installLines(location).map((row) => html`<div key=${row.id}>
    <dt>${row.name}</dt><dd><span class="code">${row.line}</span><${Copy} text=${row.line} label=${t('endpoints.copy_line')} /></dd>
  </div>`)}</dl>
</section>`;

/** The endpoints of the API with their access rules and rate classes. */
export default function Endpoints() {
  const [text, setText] = useState('');
  const load = useLoad(listEndpoints);
  const matches = (row) => `${row.endpoint} ${summaryOf(row)} ${groupName(row.tag)}`.toLowerCase().includes(text.toLowerCase());
  const found = (rows) => rows.filter(matches).map((row) => ({ ...row, id: row.endpoint }));
  const links = html`<a href="/docs">${t('auth.api')}</a> · <a href="/licences">${t('auth.licences')}</a>`;
  return html`
    <${PageHead} title=${t('nav.endpoints')} note=${html`${t('endpoints.note')} ${links}`} />
    <${Clients} />
    <${Filters}><${Search} value=${text} onSearch=${setText} /><//>
    <section class="card flush" aria-label=${t('nav.endpoints')}>
      <${ListTools} list=${{ path: '/v1/rbac/endpoints' }} />
      <${Loaded} load=${load} lines=${10}>${(rows) => (rows.some(matches)
        ? html`<${Table} caption=${t('nav.endpoints')} columns=${columns()} rows=${found(rows)} />`
        : html`<${NoMatch} />`)}<//>
    </section>`;
}
