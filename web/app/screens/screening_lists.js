import { html, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { number } from '../format.js';
import { t } from '../i18n.js';
import { useList } from '../list.js';
import { Badge, When } from '../ui/display.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Empty, toast, useAction } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { RecordList } from '../ui/record_list.js';

const changes = ({ added, changed, removed }) => t('screening.changes', {
  added: number(added), changed: number(changed), removed: number(removed),
});

function LoadDialog({ close, done }) {
  const file = useRef();
  const form = useForm({ name: '', file: '' }, async ({ name }) => {
    const body = new FormData();
    body.append('name', name);
    body.append('file', file.current.files[0]);
    done(await api.upload('/v1/screening/lists', body));
  }, undefined, ['file']);
  const hint = t('screening.file_hint');
  return html`<${Dialog} title=${t('screening.load')} close=${close}>
    <${Form} form=${form}>
      <${Field} form=${form} name="name" label=${t('field.name')} hint=${t('screening.name_hint')} required
        maxlength="100" autocomplete="off" />
      <div class="field">
        <label for="screening-file">${t('screening.file')}</label>
        <input id="screening-file" ref=${file} name="file" type="file" required aria-describedby="screening-file-hint"
          aria-invalid=${form.errors.file ? 'true' : undefined} onChange=${() => form.clear('file')} />
        <small id="screening-file-hint" class=${form.errors.file ? 'field-error' : ''}>${form.errors.file ?? hint}</small>
      </div>
      <${Actions} form=${form} label=${t('screening.load')} cancel=${close} />
    <//>
  <//>`;
}

function columns(drop) {
  return [
    {
      key: 'name', label: t('field.name'), sort: 'name',
      cell: (row) => html`${row.name} ${row.too_old && html`<${Badge} value=${t('screening.old')} tone="warn" />`}`,
    },
    { key: 'format', minor: true, label: t('screening.format'), cell: (row) => row.format.toUpperCase() },
    { key: 'version', label: t('screening.version'), cell: (row) => row.version },
    { key: 'entries', label: t('screening.entries'), sort: 'entries', cell: (row) => number(row.entries) },
    { key: 'changes', minor: true, label: t('screening.last_change'), cell: changes },
    { key: 'loaded_at', label: t('screening.loaded_at'), sort: 'loaded_at', cell: (row) => html`<${When} at=${row.loaded_at} />` },
    drop && {
      key: 'drop', label: '',
      cell: (row) => html`<button class="bare" aria-label=${t('screening.drop_named', { name: row.name })} onClick=${() => drop(row)}>
        <${Icon} name="trash" size=${16} />
      </button>`,
    },
  ].filter(Boolean);
}

/**
 * The sanctions lists. Administrators load and drop them.
 * @param {{mayLoad: boolean}} props
 */
export function ScreeningLists({ mayLoad }) {
  const [loading, setLoading] = useState(false);
  const list = useList('/v1/screening/lists', { sort: 'name' });
  const drop = useAction(async (row) => {
    const title = t('screening.drop');
    if (!(await confirm({ title, text: t('screening.drop_text', { name: row.name }), action: title }))) return;
    await api.delete(`/v1/screening/lists/${row.id}`);
    toast(t('screening.dropped'));
    list.reload();
  });
  const done = (loaded) => {
    setLoading(false);
    toast(t('screening.loaded', { name: loaded.name, n: number(loaded.entries), changes: changes(loaded) }));
    list.reload();
  };
  const load = mayLoad && html`<button onClick=${() => setLoading(true)}>
    <${Icon} name="upload" size=${16} />${t('screening.load')}
  </button>`;
  return html`
    ${load && html`<div class="actions">${load}</div>`}
    <${RecordList} list=${list} title=${t('screening.lists')} columns=${columns(mayLoad && drop.run)}
      empty=${html`<${Empty} icon="roles" title=${t('screening.none')}>${t('screening.none_text')}<//>`} />
    ${loading && html`<${LoadDialog} close=${() => setLoading(false)} done=${done} />`}`;
}
