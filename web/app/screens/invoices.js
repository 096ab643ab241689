import { html, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { Empty, ErrorBox, Skeleton } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Camera } from './camera.js';
import { Findings, PaymentPart } from './paymentpart.js';

const ACCEPT = '.pdf,.png,.jpg,.jpeg,.webp,.tif,.tiff,.gif,.bmp,.heic,application/pdf,image/*';
const MOST_BYTES = 20 << 20; // invoices.max_bytes by default; the server has the last word.

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function Drop({ onFile, onCamera, busy, small }) {
  const input = useRef();
  const [over, setOver] = useState(false);
  const take = (files) => files?.[0] && !busy && onFile(files[0]);
  return html`<div class=${`drop${over ? ' over' : ''}${small ? ' small' : ''}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
    onDrop=${(event) => { event.preventDefault(); setOver(false); take(event.dataTransfer.files); }}>
    <${Icon} name="upload" size=${28} />
    <div class="drop-text"><p><strong>${small ? t('invoices.drop_next') : t('invoices.drop')}</strong></p>
      <p class="fine">${t('invoices.kinds')}</p></div>
    <div class="row">
      <button type="button" disabled=${busy} onClick=${() => input.current.click()}>${t('invoices.choose')}</button>
      <button type="button" class="quiet" disabled=${busy} onClick=${onCamera}><${Icon} name="camera" size=${16} />${t('invoices.camera')}</button>
    </div>
    <input ref=${input} type="file" class="sr" tabindex="-1" aria-label=${t('invoices.choose')} accept=${ACCEPT} onChange=${(event) => { take(event.target.files); event.target.value = ''; }} />
  </div>`;
}

/** Why a bill was not read, what helps, and each rule that is broken. */
function Refusal({ error, retry }) {
  const { reason, violations } = error.details ?? {};
  return html`<div class="stack">
    <${ErrorBox} error=${error} retry=${retry} hint=${reason && t(`invoice_advice.${reason}`)} />
    ${violations && html`<${Card} title=${t('invoices.violations')}><${Findings} items=${violations} /><//>`}
  </div>`;
}

/** Reads a QR-bill from a file, a photo or the camera, and shows its payment part as it is on paper. */
export default function Invoices() {
  const [file, setFile] = useState(null);
  const [strict, setStrict] = useState(false);
  const [page, setPage] = useState('');
  const [state, setState] = useState({});
  const [camera, setCamera] = useState(false);
  const result = useRef();

  async function read(chosen = file, how = { strict, page }) {
    setCamera(false);
    setFile(chosen);
    if (chosen.size > MOST_BYTES) return setState({ error: { status: 413, message: t('invoices.too_large'), details: { reason: 'too_large' } } });
    setState({ busy: true });
    try {
      const options = { page: Number(how.page) || 0, validate_format: how.strict };
      const { qr_info: bill } = await api.post('/v1/invoices/qrcode', { base64_file: await base64(chosen), options });
      setState({ bill });
    } catch (error) {
      setState({ error });
    }
    return result.current?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
  }
  const change = (how) => {
    if ('strict' in how) setStrict(how.strict);
    if ('page' in how) setPage(how.page);
    if (file) read(file, { strict, page, ...how });
  };
  return html`
    <${PageHead} title=${t('nav.invoices')} note=${t('invoices.note')} />
    <div class="invoice-top">
      ${camera ? html`<${Camera} take=${read} close=${() => setCamera(false)} />` : html`<${Drop} onFile=${(chosen) => read(chosen)} onCamera=${() => setCamera(true)} busy=${state.busy} small=${Boolean(file)} />`}
      <div class="invoice-options">
        <div class="field check"><label><input type="checkbox" checked=${strict} onChange=${(event) => change({ strict: event.target.checked })} /><span>${t('invoices.strict')}<br /><span class="fine">${t('invoices.strict_hint')}</span></span></label></div>
        <div class="filter"><label for="bill-page">${t('invoices.page')}</label><input id="bill-page" type="number" min="1" value=${page} placeholder=${t('invoices.all_pages')} onChange=${(event) => change({ page: event.target.value })} /></div>
      </div>
    </div>
    <div ref=${result} aria-live="polite" class="stack">
      ${file && html`<p class="file-name"><${Icon} name="audit" size=${16} />${state.busy ? t('invoices.reading', { name: file.name }) : file.name}</p>`}
      ${state.busy && html`<${Card}><${Skeleton} lines=${8} /><//>`}
      ${state.error && html`<${Refusal} error=${state.error} retry=${() => read()} />`}
      ${state.bill && html`<${PaymentPart} bill=${state.bill} />`}
      ${!file && html`<${Card}><${Empty} icon="invoices" title=${t('invoices.empty')}>${t('invoices.empty_text')}<//><//>`}
    </div>`;
}
