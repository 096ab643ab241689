import { html, useState } from '../../lib.js';
import { dateTime, number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useList } from '../../list.js';
import { nameOf, usePeople } from '../../people.js';
import { usePrefs } from '../../prefs.js';
import { TYPES } from '../../access.js';
import { Facts, Pager, Table } from '../../ui/data.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Loaded, Notice } from '../../ui/feedback.js';
import { Filter, Filters } from '../../ui/filters.js';
import { PageHead } from '../../ui/page.js';

/** Whether the chain of hashes holds, as the list's metadata tells. */
function Chain({ metadata }) {
  const chain = metadata?.chain ?? metadata;
  if (!chain) return null;
  const intact = chain.intact ?? chain.ok ?? chain.valid ?? (chain.status ? ['ok', 'intact', 'valid'].includes(chain.status) : undefined);
  if (intact === undefined) return null;
  const broken = chain.first_bad ?? chain.broken_at ?? chain.first_bad_id;
  return intact ? html`<${Notice} tone="good" title=${t('audit.intact')}>${t('audit.intact_text', { n: number(chain.checked ?? chain.entries ?? chain.length ?? 0) })}<//>` : html`<${Notice} tone="bad" title=${t('audit.broken')}>${t('audit.broken_text', { id: broken ?? '?' })}<//>`;
}

const short = (hash) => (hash ? html`<span class="code">${String(hash).slice(0, 12)}…</span>` : '');
const idOf = (row) => row.id ?? row.seq;
const actorOf = (row) => row.actor ?? row.actor_id ?? row.user_id ?? row.created_by;

/** Who changed what, and when; the entries are chained by their hashes. */
export default function Audit() {
  usePrefs();
  usePeople();
  const [open, setOpen] = useState(null);
  const list = useList('/v1/audit', { filters: ['rec_type'], limit: 50 });
  const columns = [
    { key: 'at', label: t('audit.when'), cell: (row) => html`<span class="num">${dateTime(row.created_at ?? row.at)}</span>` },
    { key: 'who', label: t('audit.who'), cell: (row) => (actorOf(row) ? nameOf(actorOf(row)) : t('audit.system')) },
    { key: 'what', label: t('audit.what'), cell: (row) => html`<button class="link code" onClick=${() => setOpen(row)}>${row.action}</button>` },
    { key: 'type', label: t('why.type'), cell: (row) => term('rec_type', row.rec_type) },
    { key: 'hash', label: t('audit.hash'), cell: (row) => short(row.hash ?? row.entry_hash ?? row.after_hash) },
  ];
  return html`
    <${PageHead} title=${t('nav.audit')} note=${t('audit.note')} />
    ${list.data && html`<${Chain} metadata=${list.data.metadata} />`}
    <${Filters}><${Filter} label=${t('why.type')} value=${list.state.rec_type} options=${TYPES.map((one) => [one, term('rec_type', one)])} onChange=${(value) => list.set({ rec_type: value })} /><//>
    <section class="card flush" aria-label=${t('nav.audit')}><${Loaded} load=${list} lines=${10}>${(page) => (page.data.length
      ? html`<${Table} caption=${t('nav.audit')} columns=${columns} rows=${page.data.map((row) => ({ ...row, id: idOf(row) }))} /><${Pager} offset=${list.state.offset} limit=${list.limit} total=${page.total} onMove=${list.move} />`
      : html`<${Empty} icon="audit" title=${t('list.no_match')} />`)}<//></section>
    ${open && html`<${Dialog} title=${open.action} close=${() => setOpen(null)} wide><${Facts} rows=${Object.entries(open).map(([name, value]) => [name, html`<span class="code">${typeof value === 'object' ? JSON.stringify(value) : String(value)}</span>`])} /><//>`}`;
}
