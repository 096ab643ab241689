import { html, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { isClient } from '../access.js';
import { t } from '../i18n.js';
import { Empty, ErrorBox, Skeleton } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Camera } from './camera.js';
import { KeptBills } from './kept_bills.js';
import { Findings, PaymentPart } from './payment_part.js';

const ACCEPT = '.pdf,.png,.jpg,.jpeg,.webp,.tif,.tiff,.gif,.bmp,.heic,application/pdf,image/*';
const MAX_BYTES = 20 << 20; // the default of invoices.max_bytes; the server checks its own setting

function toBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** Takes a file by drag and drop, from a file dialog, or from the camera. */
function FileDrop({ onFile, onCamera, busy, small }) {
  const input = useRef();
  const [over, setOver] = useState(false);
  const take = (files) => files?.[0] && !busy && onFile(files[0]);
  function onDragOver(event) {
    event.preventDefault();
    setOver(true);
  }
  function onDrop(event) {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  }
  function onChange(event) {
    take(event.target.files);
    event.target.value = ''; // so that the same file can be chosen again
  }
  const name = `drop${over ? ' over' : ''}${small ? ' small' : ''}`;
  return html`<div class=${name} onDragOver=${onDragOver} onDragLeave=${() => setOver(false)} onDrop=${onDrop}>
    <${Icon} name="upload" size=${28} />
    <div class="drop-text">
      <p><strong>${small ? t('invoices.drop_next') : t('invoices.drop')}</strong></p>
      <p class="fine">${t('invoices.kinds')}</p>
    </div>
    <div class="row">
      <button type="button" disabled=${busy} onClick=${() => input.current.click()}>${t('invoices.choose')}</button>
      <button type="button" class="quiet" disabled=${busy} onClick=${onCamera}>
        <${Icon} name="camera" size=${16} />${t('invoices.camera')}
      </button>
    </div>
    <input ref=${input} type="file" class="sr" tabindex="-1" aria-label=${t('invoices.choose')} accept=${ACCEPT} onChange=${onChange} />
  </div>`;
}

/** The error of an invoice that could not be read, with advice and each rule that it violates. */
function ReadError({ error, retry }) {
  const { reason, violations } = error.details ?? {};
  return html`<div class="stack">
    <${ErrorBox} error=${error} retry=${retry} hint=${reason && t(`invoice_advice.${reason}`)} />
    ${violations && html`<${Card} title=${t('invoices.violations')}><${Findings} items=${violations} /><//>`}
  </div>`;
}

function Options({ strict, page, keep, change }) {
  return html`<div class="invoice-options">
    <div class="field check"><label>
      <input type="checkbox" checked=${keep} onChange=${(event) => change({ keep: event.target.checked })} />
      <span>${t('invoices.keep')}<br /><span class="fine">${t('invoices.keep_hint')}</span></span>
    </label></div>
    ${!isClient() && html`<div class="field check"><label>
      <input type="checkbox" checked=${strict} onChange=${(event) => change({ strict: event.target.checked })} />
      <span>${t('invoices.strict')}<br /><span class="fine">${t('invoices.strict_hint')}</span></span>
    </label></div>`}
    <div class="filter">
      <label for="invoice-page">${t('invoices.page')}</label>
      <input id="invoice-page" type="number" min="1" value=${page} placeholder=${t('invoices.all_pages')}
        onChange=${(event) => change({ page: event.target.value })} />
    </div>
  </div>`;
}

const TOO_LARGE = () => ({ status: 413, message: t('invoices.too_large'), details: { reason: 'too_large' } });

/** Reads a QR-bill from a file or the camera, and shows its payment part in the printed layout. */
export default function Invoices() {
  const [file, setFile] = useState(null);
  const [options, setOptions] = useState({ strict: false, page: '', keep: isClient() });
  const [state, setState] = useState({}); // {busy}, {error} or {bill}
  const [camera, setCamera] = useState(false);
  const [kept, setKept] = useState(0); // changes when a bill was kept
  const result = useRef();
  const latest = useRef(0); // counts what was chosen: the answer to a former choice is not shown

  async function read(chosen, { strict, page, keep } = options) {
    const mine = ++latest.current;
    setCamera(false);
    setFile(chosen);
    if (chosen.size > MAX_BYTES) return setState({ error: TOO_LARGE() });
    setState({ busy: true });
    try {
      const body = { base64_file: await toBase64(chosen), options: { page: Number(page) || 0, validate_format: strict, keep } };
      const { qr_info: bill } = await api.post('/v1/invoices/qrcode', body);
      if (keep) setKept((n) => n + 1);
      if (mine !== latest.current) return undefined;
      setState({ bill });
    } catch (error) {
      if (mine !== latest.current) return undefined;
      setState({ error });
    }
    return result.current?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
  }
  function showKept(bill) {
    latest.current++;
    setFile(null);
    setState({ bill });
    result.current?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
  }
  function change(changes) {
    const next = { ...options, ...changes };
    setOptions(next);
    if (file && (state.error || !('keep' in changes) || changes.keep)) read(file, next);
  }
  return html`
    <${PageHead} title=${t(isClient() ? 'nav.bills' : 'nav.invoices')} note=${t('invoices.note')} />
    <div class="invoice-top">
      ${camera
        ? html`<${Camera} take=${(taken) => read(taken)} close=${() => setCamera(false)} />`
        : html`<${FileDrop} onFile=${(chosen) => read(chosen)} onCamera=${() => setCamera(true)} busy=${state.busy}
            small=${Boolean(file)} />`}
      <${Options} ...${options} change=${change} />
    </div>
    <div ref=${result} aria-live="polite" class="stack">
      ${file && html`<p class="file-name">
        <${Icon} name="audit" size=${16} />${state.busy ? t('invoices.reading', { name: file.name }) : file.name}
      </p>`}
      ${state.busy && html`<${Card}><${Skeleton} lines=${8} /><//>`}
      ${state.error && html`<${ReadError} error=${state.error} retry=${() => read(file)} />`}
      ${state.bill && html`<${PaymentPart} bill=${state.bill} />`}
      ${!file && !state.bill && html`<${Card}><${Empty} icon="invoices" title=${t('invoices.empty')}>${t('invoices.empty_text')}<//><//>`}
    </div>
    <${KeptBills} key=${kept} show=${showKept} />`;
}
