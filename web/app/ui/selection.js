import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { defer } from '../deferred.js';
import { t } from '../i18n.js';
import { SignedOut } from '../session.js';
import { confirm } from './dialog.js';
import { toast, toastError, useAction } from './feedback.js';
import { Icon } from './icon.js';

/**
 * The selected rows of the page that is shown. Another page, filter or order clears it, so that nothing is changed that the
 * user does not see.
 * @param {any[]} rows with an id each
 * @param {(row: any) => string} [nameOf] for screen readers
 */
export function useSelection(rows, nameOf = (row) => row.name ?? row.title ?? row.id) {
  const [ids, setIds] = useState(new Set());
  const last = useRef(null); // the row that was selected before, where a range with Shift begins
  const shown = rows.map((row) => row.id).join();
  useLayoutEffect(() => { // before the first click on the new rows: a later reset would undo it
    setIds((was) => new Set(rows.map((row) => row.id).filter((id) => was.has(id))));
    last.current = null;
  }, [shown]);
  const put = (changed, on) => setIds((was) => {
    const next = new Set(was);
    for (const { id } of changed) next[on ? 'add' : 'delete'](id);
    return next;
  });
  return {
    nameOf,
    rows: rows.filter((row) => ids.has(row.id)),
    has: (row) => ids.has(row.id),
    /** Selects a row or not; with range, also all rows between it and the one before. */
    toggle(row, range) {
      const [from, to] = [rows.findIndex(({ id }) => id === last.current), rows.indexOf(row)].sort((a, b) => a - b);
      put(range && from >= 0 ? rows.slice(from, to + 1) : [row], !ids.has(row.id));
      last.current = row.id;
    },
    toggleAll: (on) => put(rows, on),
    clear: () => setIds(new Set()),
  };
}

const PARALLEL = 4; // requests of one bulk action at the same time

/** Runs fn for each row; returns the errors. It fails when the user signs out: the next user must not continue. */
async function forEachRow(rows, fn) {
  const errors = [];
  const queue = [...rows];
  const fail = (error) => {
    errors.push(error);
    if (!(error instanceof SignedOut)) return;
    queue.length = 0;
    throw error;
  };
  const work = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) await fn(row).catch(fail);
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  return errors;
}

/** Reports how many records a bulk action has changed, and the first error. */
function report(rows, errors) {
  const n = rows.length - errors.length;
  if (n > 0) toast(t('list.changed', { n }));
  if (errors.length) toastError(Object.assign(errors[0], { message: t('list.failed', { n: errors.length, message: errors[0].message }) }));
}

/** Runs a bulk action in ten seconds, unless the user undoes it. */
function runLater(action, rows, text, done) {
  const run = async (options) => {
    report(rows, await forEachRow(rows, (row) => action.each(row, undefined, options)));
    done();
  };
  defer({ key: `${action.key} ${rows.map(({ id }) => id).join()}`, text, run, failed: toastError });
}

/** Runs a bulk action; returns whether the rows are no longer selected. */
async function runAction(action, rows, done) {
  const text = action.later?.(rows);
  if (text) {
    runLater(action, rows, text, done);
    return true;
  }
  const ask = action.confirm?.(rows);
  if (ask && !(await confirm(ask))) return false;
  const extra = action.prepare ? await action.prepare(rows) : undefined;
  if (extra === null) return false; // The user closed the dialog that prepares the action.
  const refused = (await action.run?.(rows, extra)) ?? [];
  const errors = !action.each ? refused : await forEachRow(rows, (row) => action.each(row, extra));
  report(rows, errors);
  done();
  return true;
}

function ActionButton({ action, selection, done }) {
  const { busy, run } = useAction(async () => {
    if (await runAction(action, selection.rows, done)) selection.clear();
  });
  return html`<button class=${`quiet small${action.danger ? ' danger' : ''}`} disabled=${busy} aria-busy=${busy ? 'true' : undefined}
    onClick=${run}>${action.icon && html`<${Icon} name=${action.icon} size=${14} />`}${action.label}</button>`;
}

/**
 * The actions for the selected rows.
 * @param {{selection: ReturnType<typeof useSelection>, done: () => void, actions: {key: string, label: string, icon?: string,
 *   danger?: boolean, each?: (row: any, extra: any, options?: object) => Promise<any>, run?: (rows: any[], extra: any) => Promise<any>,
 *   prepare?: (rows: any[]) => Promise<any>, confirm?: (rows: any[]) => object|null, later?: (rows: any[]) => string|false,
 *   fits?: (row: any) => boolean}[]}} props
 *   each: called for every row; run: called once with all rows, resolves to
 *   the errors of those that it did not change, or to nothing; prepare: asks the user for more, such as a person, and
 *   resolves to null when they cancel; later: says what `each` will do in ten seconds, unless the user undoes it; confirm: returns the
 *   question of confirm(); fits: whether the action is possible for a
 *   row; the action is offered when it fits all selected rows
 */
export function BulkActions({ selection, actions, done }) {
  const { rows } = selection;
  if (!rows.length) return null;
  const offered = actions.filter(({ fits }) => !fits || rows.every(fits));
  return html`<div class="bulk" role="group" aria-label=${t('list.bulk')}>
    <span role="status">${t('list.selected', { n: rows.length })}</span>
    ${offered.map((action) => html`<${ActionButton} key=${action.key} action=${action} selection=${selection} done=${done} />`)}
    <button class="bare small" onClick=${selection.clear}>${t('list.unselect')}</button>
  </div>`;
}
