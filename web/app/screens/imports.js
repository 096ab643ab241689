import { html, useEffect, useRef } from '../lib.js';
import { api } from '../api.js';
import { downloadFile } from '../download.js';
import { number } from '../format.js';
import { t } from '../i18n.js';
import { useList } from '../list.js';
import { useLoad } from '../load.js';
import { usePreferences } from '../preferences.js';
import { go } from '../router.js';
import { Badge, Facts, Progress, When } from '../ui/display.js';
import { Empty, ErrorBox, Loaded, Notice, useAction } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { RecordList } from '../ui/record_list.js';

const TONES = { done: 'good', failed: 'bad', running: 'info' };
const POLL_MS = 1000;

const sentFiles = new Map(); // the id of a dry run → its file, to import it without choosing it again

const State = ({ of }) => html`<${Badge} value=${t(`imports.state.${of.state}`)} tone=${TONES[of.state]} />
  ${of.dry_run && html` <${Badge} value=${t('imports.dry_run')} />`}`;

/** Sends a file and shows its import. */
async function start(file, { on_duplicate: onDuplicate, dry_run: dryRun }) {
  const form = new FormData();
  form.append('file', file);
  const made = await api.upload(`/v1/customers/import?on_duplicate=${onDuplicate}&dry_run=${Boolean(dryRun)}`, form);
  if (dryRun) sentFiles.set(made.id, file);
  go(`/imports/${made.id}`);
}

function Upload() {
  const file = useRef();
  const form = useForm({ file: '', on_duplicate: 'skip', dry_run: true }, (values) => start(file.current.files[0], values),
    undefined, ['file', 'on_duplicate', 'dry_run']);
  return html`<${Card} title=${t('imports.new')}>
    <${Form} form=${form}>
      <div class="fields">
        <div class="field wide">
          <label for="import-file">${t('imports.file')}</label>
          <input id="import-file" ref=${file} name="file" type="file" accept=".csv,text/csv" required aria-describedby="import-file-hint"
            onChange=${() => form.clear('file')} aria-invalid=${form.errors.file ? 'true' : undefined} />
          <small id="import-file-hint" class=${form.errors.file ? 'field-error' : ''}>${form.errors.file ?? t('imports.file_hint')}</small>
        </div>
        <${Field} form=${form} name="on_duplicate" label=${t('imports.on_duplicate')} hint=${t('imports.on_duplicate_hint')}
          options=${['skip', 'update', 'reject'].map((value) => [value, t(`imports.${value}`)])} />
        <${Field} form=${form} name="dry_run" type="checkbox" label=${t('imports.dry_run_first')} />
      </div>
      <${Actions} form=${form} label=${form.values.dry_run ? t('imports.try') : t('imports.start')} />
    <//>
  <//>`;
}

const columns = () => [
  { key: 'created_at', label: t('imports.sent_at'), sort: 'created_at', cell: (row) => html`<${When} at=${row.created_at} exact />` },
  { key: 'state', label: t('field.state'), cell: (row) => html`<${State} of=${row} />` },
  ...['rows', 'created', 'updated', 'duplicates', 'rejected'].map((key) => (
    { key, minor: key !== 'created' && key !== 'rejected', label: t(`imports.${key}`), cell: (row) => number(row[key]) })),
];

function Imports() {
  const list = useList('/v1/imports', { sort: '-created_at' });
  return html`
    <${PageHead} title=${t('imports.title')} note=${t('imports.note')} back=${['/customers', t('nav.customers')]} />
    <div class="stack">
      <${Upload} />
      <${RecordList} list=${list} title=${t('imports.title')} columns=${columns()} link=${(row) => `/imports/${row.id}`}
        empty=${html`<${Empty} icon="upload" title=${t('imports.none')}>${t('imports.none_text')}<//>`} />
    </div>`;
}

/** Loads an import again and again until it has ended. */
function useProgress(id) {
  const load = useLoad(() => api.get(`/v1/imports/${id}`), [id]);
  const open = load.data && (load.data.state === 'queued' || load.data.state === 'running');
  useEffect(() => {
    if (!open || load.loading) return undefined;
    const timer = setTimeout(load.reload, POLL_MS);
    return () => clearTimeout(timer);
  }, [open, load.loading, load.data]);
  return load;
}

function Outcome({ of }) {
  const rejected = useAction(() => downloadFile(`/v1/imports/${of.id}/rejected`, 'rejected.csv'));
  const file = sentFiles.get(of.id);
  const real = useAction(() => start(file, { on_duplicate: of.on_duplicate }));
  return html`<div class="stack">
    ${of.failure && html`<${ErrorBox} error=${of.failure} hint=${t('imports.failed_hint')} />`}
    ${of.state === 'done' && of.dry_run && html`<${Notice} tone="good" title=${t('imports.tried')}
      action=${file && html`<button disabled=${real.busy} onClick=${real.run}>${t('imports.start')}</button>`}>
      ${file ? t('imports.tried_text') : t('imports.choose_again')}
    <//>`}
    <${Card} title=${t('imports.result')}>
      <${Progress} part=${of.done} whole=${of.rows} label=${t('imports.progress')} />
      <${Facts} rows=${[
        [t('field.state'), html`<${State} of=${of} />`],
        ...['rows', 'done', 'created', 'updated', 'duplicates', 'rejected'].map((name) => [t(`imports.${name}`), number(of[name])]),
        [t('imports.on_duplicate'), t(`imports.${of.on_duplicate}`)],
        [t('imports.sent_at'), html`<${When} at=${of.created_at} exact />`],
        [t('imports.finished_at'), of.finished_at && html`<${When} at=${of.finished_at} exact />`],
      ]} />
      ${of.rejected + of.duplicates > 0 && html`<div class="actions"><button class="quiet" disabled=${rejected.busy}
        onClick=${rejected.run}>
        <${Icon} name="download" size=${16} />${t('imports.download_rejected')}
      </button></div>`}
    <//>
  </div>`;
}

function Import({ id }) {
  const load = useProgress(id);
  return html`
    <${PageHead} title=${t('imports.one')} back=${['/imports', t('imports.title')]} />
    <${Loaded} load=${load} lines=${8}>${(of) => html`<${Outcome} of=${of} />`}<//>`;
}

/** The imports of customers, or one with its progress. */
export default function ImportScreen({ id }) {
  usePreferences();
  return id ? html`<${Import} key=${id} id=${id} />` : html`<${Imports} />`;
}
