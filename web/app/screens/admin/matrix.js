import { html, useEffect, useId, useMemo, useState } from '../../lib.js';
import { api } from '../../api.js';
import { EVERYONE, may, PERMISSIONS } from '../../access.js';
import { number } from '../../format.js';
import { t, term } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { ErrorBox, Loaded, Notice, toast, useAction } from '../../ui/feedback.js';
import { Card } from '../../ui/page.js';
import { drafts, useUnsaved } from '../../unsaved.js';
import { groupName, listEndpoints, summaryOf } from './endpoint_list.js';
import { addedByNeed, changesOf, choose, requestOf } from './role_changes.js';

/** Moves the focus between the checkboxes of a table with the arrow keys. */
function moveFocus(event) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const cell = event.target.closest('td');
  if (!step || !cell) return;
  const row = cell.parentElement;
  const rows = [...row.parentElement.children];
  const next = rows[rows.indexOf(row) + step[0]]?.children[cell.cellIndex + step[1]]?.querySelector('input');
  if (!next) return;
  event.preventDefault();
  next.focus();
}

const has = (changes, key, was) => changes.get(key) ?? was;

function Row({ type, was, changes, set, fixed }) {
  const name = term('rec_type', type);
  return html`<tr>
    <th scope="row">${name}</th>
    ${PERMISSIONS.map((one) => {
      const key = `${type} ${one}`;
      const label = t('matrix.cell', { permission: term('permission', one), type: name });
      return html`<td key=${one} class=${changes.has(key) ? 'changed' : ''}><label>
        <input type="checkbox" aria-label=${label} checked=${has(changes, key, was.includes(one))} disabled=${fixed}
          onChange=${(event) => set(key, event.target.checked)} />
      </label></td>`;
    })}
  </tr>`;
}

const TypeTable = ({ matrix, ...props }) => html`<div class="matrix-box" onKeyDown=${moveFocus} tabindex="0" role="group"
  aria-label=${t('matrix.title')}>
  <table class="matrix"><caption class="sr">${t('matrix.title')}</caption>
    <thead><tr><th scope="col">${t('access.type')}</th>
      ${PERMISSIONS.map((one) => html`<th key=${one} scope="col"><span>${term('permission', one)}</span></th>`)}</tr></thead>
    <tbody>${matrix.types.map(({ rec_type: type, permissions }) => html`
      <${Row} key=${type} type=${type} was=${permissions} ...${props} />`)}</tbody>
  </table>
</div>`;

/** The endpoints by the groups of the API document. */
function grouped(endpoints) {
  const groups = new Map();
  for (const row of endpoints) groups.set(row.tag, [...(groups.get(row.tag) ?? []), row]);
  return [...groups].sort(([a], [b]) => a.localeCompare(b));
}

function Endpoint({ row, was, changes, set, fixed }) {
  const key = row.endpoint;
  return html`<div class=${`field check${changes.has(key) ? ' changed' : ''}`}><label>
    <input type="checkbox" checked=${has(changes, key, was)} disabled=${fixed}
      onChange=${(event) => set(key, event.target.checked)} />
    <span>${summaryOf(row)}<br /><span class="fine code">${row.endpoint}</span></span>
  </label></div>`;
}

function Endpoints({ matrix, endpoints, changes, ...props }) {
  const held = new Set(matrix.endpoints);
  return grouped(endpoints.filter((row) => row.access.startsWith('bearer'))).map(([tag, rows]) => {
    const n = rows.filter((row) => matrix.fixed || has(changes, row.endpoint, held.has(row.endpoint))).length;
    const changed = rows.some((row) => changes.has(row.endpoint));
    return html`<details key=${tag} open=${changed || undefined}>
      <summary>${groupName(tag)} <span class="fine num">${number(n)} / ${number(rows.length)}</span></summary>
      ${rows.map((row) => html`
        <${Endpoint} key=${row.endpoint} row=${row} was=${matrix.fixed || held.has(row.endpoint)} changes=${changes} ...${props} />`)}
    </details>`;
  });
}

/** Returns the choices that were made while others were being saved. */
function changesSince(saved, now) {
  const undone = [...saved].filter(([key]) => !now.has(key)).map(([key, on]) => [key, !on]);
  return new Map([...now].filter(([key]) => !saved.has(key)).concat(undone));
}

function SaveBar({ n, busy, save, undo }) {
  const id = useId();
  return html`<div class="save-bar" role="group" aria-labelledby=${id}>
    <span id=${id} class="grow" aria-live="polite">${t('matrix.changes', { n })}</span>
    <button type="button" class="quiet" disabled=${busy} onClick=${undo}>${t('matrix.undo')}</button>
    <button type="button" disabled=${busy} onClick=${save}>${t('do.save')}</button>
  </div>`;
}

/** Says how many endpoints the permissions need that are about to be granted; they are marked in the list. */
const AddedByNeed = ({ n }) => n > 0 && html`<${Notice}>${t('matrix.needed_endpoints', { n })}<//>`;

/** The choices of the user about a role, and what they change: {changes, added, set, undo, keepNewer}. */
function useChoices(role, matrix, endpoints) {
  const draft = `role ${role.id}`;
  const [chosen, setChosen] = useState(() => new Map(drafts.read(draft)));
  useEffect(() => (chosen.size ? drafts.write(draft, [...chosen]) : drafts.remove(draft)), [chosen]);
  useEffect(() => () => drafts.remove(draft), []);
  const changes = useMemo(() => (matrix ? changesOf(matrix, endpoints ?? [], chosen) : new Map()), [matrix, endpoints, chosen]);
  return {
    changes, added: addedByNeed(changes, chosen).length,
    set: (key, on) => setChosen((was) => choose(matrix, endpoints ?? [], was, key, on)),
    undo: () => setChosen(new Map()),
    /** Keeps what was changed while others were being saved. */
    keepNewer: (saved) => setChosen((now) => changesSince(saved, now)),
    chosen,
  };
}

/**
 * The permissions of a role on all record types, and its endpoints. Changes are collected and saved with one request. A permission
 * brings the endpoints that its holders need.
 * @param {{role: object, saved: () => void}} props
 */
export function Matrix({ role, saved }) {
  const load = useLoad(() => api.withETag(`/v1/rbac/roles/${role.id}/permissions`), [role.id]);
  const endpoints = useLoad(listEndpoints);
  const [problem, setProblem] = useState(null);
  const { changes, added, chosen, set, ...choices } = useChoices(role, load.data?.record, endpoints.data);
  useUnsaved(changes.size > 0);
  const mayChange = may('grants', 'create');
  const ofEveryone = role.id === EVERYONE;
  const undo = () => {
    choices.undo();
    setProblem(null);
    load.reload();
  };
  const save = useAction(async () => {
    await api.put(`/v1/rbac/roles/${role.id}/permissions`, requestOf(load.data.record, changes), { ifMatch: load.data.etag });
    choices.keepNewer(chosen);
    setProblem(null);
    load.reload();
    saved();
    toast(t('saved'));
  }, setProblem);
  return html`<${Loaded} load=${load} lines=${10}>${({ record: matrix }) => {
    const props = { matrix, changes, set, fixed: matrix.fixed || !mayChange };
    return html`
      ${matrix.fixed && html`<${Notice} title=${t('matrix.fixed')}>${t('matrix.fixed_text')}<//>`}
      ${ofEveryone && html`<${Notice} title=${t('matrix.everyone')}>${t('matrix.everyone_text')}<//>`}
      <div class=${ofEveryone ? '' : 'grid-main'}>
        ${!ofEveryone && html`<${Card} class="flush" title=${t('matrix.title')}><${TypeTable} ...${props} /><//>`}
        <${Card} title=${t('grants.endpoints')}><p class="fine">${t('matrix.endpoints_note')}</p><${AddedByNeed} n=${added} />
          <${Loaded} load=${endpoints} lines=${4}>${(all) => html`<${Endpoints} endpoints=${all} ...${props} />`}<//>
        <//>
      </div>
      ${problem && html`<${ErrorBox} error=${problem} retry=${problem.status === 412 ? undo : undefined} />`}
      ${changes.size > 0 && html`<${SaveBar} n=${changes.size} busy=${save.busy || load.loading} save=${save.run} undo=${undo} />`}`;
  }}<//>`;
}
