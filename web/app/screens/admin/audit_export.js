import { html, useState } from '../../lib.js';
import { api, ApiError, send } from '../../api.js';
import { offerFile } from '../../download.js';
import { number } from '../../format.js';
import { t } from '../../i18n.js';
import { DateField } from '../../ui/date_field.js';
import { Dialog } from '../../ui/dialog.js';
import { Actions, Form, useForm } from '../../ui/form.js';
import { Icon } from '../../ui/icon.js';

const PART = 10_000; // entries of one request, the server's limit
const MOST = 100_000; // entries of one file

/** The range of the local days of a filter, as the list searches it: from..to. */
export function rangeOf(from, to) {
  if (!from && !to) return '';
  const start = from ? new Date(`${from}T00:00`).toISOString() : '';
  const end = to ? new Date(`${to}T23:59:59.999`).toISOString() : '';
  return `${start}..${end}`;
}

/** The numbers of the first and the last entry of a range of days; undefined for none. */
async function entriesOf(days) {
  const seqOf = async (sort) => (await api.get('/v1/audit', { 'search.at': days, sort, limit: 1 })).data[0]?.seq;
  return Promise.all([seqOf('seq'), seqOf('-seq')]);
}

const wrong = (message) => new ApiError({ status: 400, code: 'audit.export', message, details: { to: message } });

/** Downloads the entries of some days as one signed file. */
async function download(days) {
  const [first, last] = await entriesOf(days);
  if (!first) throw wrong(t('audit_export.none'));
  if (last - first >= MOST) throw wrong(t('audit_export.too_many', { most: number(MOST) }));
  const parts = [];
  for (let from = first; from <= last; from += PART) {
    const response = await send('GET', '/v1/audit/export', { query: { from, to: Math.min(last, from + PART - 1) } });
    parts.push(await response.blob());
  }
  offerFile(`audit-${first}-${last}.jsonl`, new Blob(parts, { type: 'application/jsonl' }));
}

function ExportDialog({ from, to, close }) {
  const form = useForm({ from, to }, async (values) => {
    await download(rangeOf(values.from, values.to));
    close();
  }, undefined, ['from', 'to']);
  return html`<${Dialog} title=${t('audit_export.title')} close=${close}><${Form} form=${form}>
    <p>${t('audit_export.text')}</p>
    <div class="fields">
      <${DateField} form=${form} name="from" label=${t('audit.from')} optional />
      <${DateField} form=${form} name="to" label=${t('audit.to')} optional />
    </div>
    <${Actions} form=${form} label=${t('audit_export.do')} cancel=${close} />
  <//><//>`;
}

/** The button that exports a part of the trail, and the link to the screen that verifies such a file. */
export function ExportButtons({ from, to }) {
  const [open, setOpen] = useState(false);
  return html`
    <a class="button quiet" href="/admin/audit/verify"><${Icon} name="check" size=${16} />${t('audit_proof.title')}</a>
    <button class="quiet" onClick=${() => setOpen(true)}><${Icon} name="download" size=${16} />${t('audit_export.title')}</button>
    ${open && html`<${ExportDialog} from=${from} to=${to} close=${() => setOpen(false)} />`}`;
}
