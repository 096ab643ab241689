import { html, useEffect, useId, useRef, useState } from '../lib.js';
import { advice, api, idempotencyKey } from '../api.js';
import { useFiles, uploadPath } from '../file_lists.js';
import { dateTime } from '../format.js';
import { language, t } from '../i18n.js';
import { myId, usePeople } from '../people.js';
import { SignedOut } from '../session.js';
import { uploadFile } from '../upload.js';
import { confirm } from './dialog.js';
import { Badge } from './display.js';
import { ErrorBox, toast, toastError } from './feedback.js';
import { fileAfter, FileViewer, Thumbnail } from './file_preview.js';
import { Icon } from './icon.js';
import { Person } from './person.js';

const ACCEPT = '.pdf,.jpg,.jpeg,.png,application/pdf,image/jpeg,image/png';
const AT_ONCE = 2; // uploads that run in parallel

/** A size in bytes for people. */
export function fileSize(bytes) {
  const [unit, size] = bytes < 1e6 ? ['kilobyte', Math.max(1, bytes / 1e3)] : ['megabyte', bytes / 1e6];
  const style = { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: size < 10 ? 1 : 0 };
  return new Intl.NumberFormat(language.get(), style).format(size);
}

/** Returns the reason why the server has rejected a file. */
const reasonOf = (error) => error.fields?.file ?? `${error.message} ${error.retryAfter || error.status === 0 ? advice(error) : ''}`.trim();

/**
 * The uploads of one record: {uploads, add, cancel, dismiss}. Two run at the same time, the others wait. An upload is
 * {key, file, share, error, stop}.
 */
function useUploads(of, done, start) {
  const [uploads, setUploads] = useState([]);
  const queue = useRef([]);
  const running = useRef(0);
  const gone = useRef(false);
  const change = (key, changes) => !gone.current && setUploads((was) => was.map((one) => (one.key === key ? { ...one, ...changes } : one)));
  const dismiss = (key) => !gone.current && setUploads((was) => was.filter((one) => one.key !== key));

  async function run(one) {
    running.current += 1;
    try {
      await uploadFile(uploadPath(of), one.file, {
        key: one.key, signal: one.stop.signal, progress: (share) => change(one.key, { share }),
      });
      dismiss(one.key);
      done(one.file);
    } catch (error) {
      if (error instanceof SignedOut) queue.current = []; // The next user must not continue.
      if (error.name === 'AbortError') dismiss(one.key);
      else change(one.key, { error });
    } finally {
      running.current -= 1;
      next();
    }
  }
  function next() {
    while (running.current < AT_ONCE && queue.current.length) run(queue.current.shift());
  }
  function add(files) {
    const added = [...files].map((file) => ({ key: idempotencyKey(), file, share: 0, stop: new AbortController() }));
    queue.current.push(...added);
    setUploads((was) => [...was.filter((one) => !one.error), ...added]);
    next();
  }
  function cancel(one) {
    queue.current = queue.current.filter((waiting) => waiting.key !== one.key);
    one.stop.abort();
    dismiss(one.key);
  }
  useEffect(() => {
    const files = start?.();
    if (files) add(files);
  }); // after each rendering, because a message may be shown before its files are known
  useEffect(() => () => {
    gone.current = true; // The uploads continue: leaving a screen is no cancellation.
  }, []);
  return { uploads, add, cancel, dismiss };
}

function Upload({ one, cancel, dismiss }) {
  const share = Math.round(one.share * 100);
  return html`<li class=${one.error ? 'failed' : ''}>
    <span class="thumbnail" aria-hidden="true"><${Icon} name=${one.error ? 'warning' : 'upload'} size=${20} /></span>
    <div class="grow two-lines">
      <span class="name">${one.file.name}</span>
      ${one.error
        ? html`<span class="reason" role="alert">${reasonOf(one.error)}</span>`
        : html`<progress max="100" value=${share} aria-label=${t('files.uploading', { name: one.file.name })}>${share} %</progress>`}
    </div>
    <button type="button" class="bare" aria-label=${t(one.error ? 'files.dismiss' : 'files.cancel', { name: one.file.name })}
      onClick=${() => (one.error ? dismiss(one.key) : cancel(one))}><${Icon} name="close" size=${16} /></button>
  </li>`;
}

const STATUS_TONE = { checking: 'info', infected: 'bad' };

function Row({ file, open, remove }) {
  const ready = file.status === 'ready';
  return html`<li>
    <button type="button" class="bare" disabled=${!ready} aria-label=${t('files.open', { name: file.name })} onClick=${() => open(file)}>
      <${Thumbnail} file=${file} />
    </button>
    <div class="grow two-lines">
      <span class="name" title=${file.name}>${file.name}</span>
      <span>${fileSize(file.size)} · ${dateTime(file.created_at)} · <${Person} id=${file.uploaded_by} /></span>
    </div>
    ${!ready && html`<${Badge} value=${t(`files.status.${file.status}`)} tone=${STATUS_TONE[file.status]} />`}
    ${remove && html`<button type="button" class="bare" aria-label=${t('files.delete', { name: file.name })} onClick=${() => remove(file)}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

/**
 * A button that chooses files.
 * @param {{label: string, take: (files: File[]) => void}} props
 */
export function AttachButton({ label, take }) {
  const chosen = useRef();
  const choose = (event) => {
    if (event.target.files.length) take([...event.target.files]);
    event.target.value = '';
  };
  return html`<input type="file" hidden multiple accept=${ACCEPT} ref=${chosen} onChange=${choose} />
    <button type="button" class="quiet" aria-label=${label} onClick=${() => chosen.current.click()}><${Icon} name="upload" /></button>`;
}

/** Buttons that choose files or, on phones, take a photo. */
export function PhotoButtons({ take, hint }) {
  const chosen = useRef();
  const camera = useRef();
  const choose = (event) => {
    if (event.target.files.length) take([...event.target.files]);
    event.target.value = ''; // The same file can be chosen again.
  };
  const phone = matchMedia('(pointer: coarse)').matches;
  return html`
    <input type="file" hidden multiple accept=${ACCEPT} ref=${chosen} onChange=${choose} />
    <button type="button" class="quiet small" aria-describedby=${hint} onClick=${() => chosen.current.click()}>
      <${Icon} name="upload" size=${14} />${t('files.choose')}
    </button>
    ${phone && html`<input type="file" hidden accept="image/*" capture="environment" ref=${camera} onChange=${choose} />
      <button type="button" class="quiet small" onClick=${() => camera.current.click()}>
        <${Icon} name="camera" size=${14} />${t('files.photo')}
      </button>`}`;
}

/** A place to drop files on, with buttons for a file and, on phones, for the camera. */
function Drop({ add, compact }) {
  const [over, setOver] = useState(false);
  const hint = useId();
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length) add(event.dataTransfer.files);
  };
  const enter = (event) => {
    if (![...event.dataTransfer.types].includes('Files')) return;
    event.preventDefault();
    setOver(true);
  };
  const phone = matchMedia('(pointer: coarse)').matches;
  const dragging = { onDragEnter: enter, onDragOver: enter, onDragLeave: () => setOver(false), onDrop: drop };
  return html`<div class=${`file-drop${over ? ' over' : ''}`} ...${dragging}>
    <${PhotoButtons} take=${add} hint=${compact ? undefined : hint} />
    ${!compact && html`<span class="fine" id=${hint}>${t(phone ? 'files.hint' : 'files.hint_drop')}</span>`}
  </div>`;
}

const isMine = (file) => file.uploaded_by === myId();

/**
 * The files of one record, with previews, upload and deletion.
 * @param {{of: {type: 'kyc_documents'|'chat_messages'|'tasks', parent: string, record: string}, readOnly?: boolean,
 *   noUpload?: boolean, compact?: boolean, start?: () => File[]|undefined, mayDelete?: (file: object) => boolean,
 *   changed?: () => void}} props
 *   readOnly: no upload and no deletion; noUpload: without the place to drop files on; compact: without the hint; start: takes
 *   files to upload at once, each only once; mayDelete: whether to offer the deletion, by default of the user's own files (the
 *   server decides); changed: called after each upload and deletion
 */
export function FileList({ of, readOnly, noUpload = readOnly, compact, start, mayDelete = isMine, changed }) {
  usePeople();
  const [open, setOpen] = useState(null);
  const list = useFiles(of);
  const settle = () => {
    list.reload();
    changed?.();
  };
  const { uploads, add, cancel, dismiss } = useUploads(of, (file) => {
    settle();
    toast(t('files.uploaded', { name: file.name }));
  }, start);
  async function remove(file) {
    const text = t('files.delete_text', { name: file.name });
    if (!(await confirm({ title: t('files.delete_title'), text, action: t('files.delete_action') }))) return;
    try {
      await api.delete(`/v1/files/${file.id}`);
    } catch (error) {
      toastError(error);
    }
    settle();
  }
  const files = list.files ?? [];
  const ready = files.filter((file) => file.status === 'ready');
  const after = (file) => ready.length > 1 && (() => setOpen(fileAfter(ready, file)));
  const nothing = !files.length && !uploads.length;
  if (nothing && noUpload && !list.error) return null;
  return html`<div class="files">
    ${list.error && html`<${ErrorBox} error=${list.error} retry=${list.reload} />`}
    ${!nothing && html`<ul aria-label=${t('files.list')}>
      ${uploads.map((one) => html`<${Upload} key=${one.key} one=${one} cancel=${cancel} dismiss=${dismiss} />`)}
      ${files.map((file) => html`<${Row} key=${file.id} file=${file} open=${setOpen} remove=${!readOnly && mayDelete(file) && remove} />`)}
    </ul>`}
    ${!noUpload && html`<${Drop} add=${add} compact=${compact} />`}
    ${open && html`<${FileViewer} key=${open.id} file=${open} close=${() => setOpen(null)} next=${after(open)} />`}
  </div>`;
}
