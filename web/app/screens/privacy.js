// Rights of a person to their data (nFADP, GDPR): export, erasure, retention and legal hold.
import { html, useEffect, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { may, myId } from '../access.js';
import { downloadFile } from '../download.js';
import { date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { DateField } from '../ui/date_field.js';
import { Badge, Facts } from '../ui/display.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Loaded, Notice, toast, useAction } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Person } from '../ui/person.js';

const REASONS = ['request', 'retention', 'order', 'error'];
const POLL_MS = 2000; // while an erasure runs

/** A button that downloads everything that is stored about a person. */
export function ExportButton({ path }) {
  const save = useAction(() => downloadFile(`${path}/export`, 'export.json'));
  return html`<button class="quiet" disabled=${save.busy} onClick=${save.run}>
    <${Icon} name="audit" size=${16} />${t('privacy.export')}
  </button>`;
}

/** The state of an erasure, and what it has left. */
function Erased({ erasure, close }) {
  const [shown, setShown] = useState(erasure);
  const isDone = shown.status === 'erased';
  useEffect(() => {
    if (isDone) return undefined;
    const timer = setInterval(() => api.get(`/v1/erasures/${erasure.id}`).then(setShown, () => {}), POLL_MS);
    return () => clearInterval(timer);
  }, [isDone]);
  return html`<${Dialog} title=${t('privacy.erase')} close=${close}>
    <p class="row" role="status"><${Badge} group="erasure_status" value=${shown.status} tone=${isDone ? 'good' : 'info'} />
      <span>${t(isDone ? 'privacy.erased' : 'privacy.erasing')}</span></p>
    ${shown.left?.length > 0 && html`<h3>${t('privacy.left')}</h3>
      <ul class="items tight">${shown.left.map((one) => html`<li key=${one.what}>
        <p class="grow">${one.why}</p>
      </li>`)}</ul>`}
    <div class="actions"><button onClick=${close}>${t('do.close')}</button></div>
  <//>`;
}

function EraseDialog({ path, name, close, done }) {
  const [key] = useState(idempotencyKey);
  const form = useForm({ reason: REASONS[0], understood: false }, async ({ reason }) => {
    done(await api.post(`${path}/erasure`, { reason }, { headers: { 'Idempotency-Key': key } }));
  });
  return html`<${Dialog} title=${t('privacy.erase')} close=${close}>
    <${Notice} tone="warn" title=${t('privacy.erase_title', { name })}>${t('privacy.erase_text')}<//>
    <${Form} form=${form}>
      <${Field} form=${form} name="reason" label=${t('privacy.reason')}
        options=${REASONS.map((one) => [one, term('erasure_reason', one)])} />
      <${Field} form=${form} name="understood" type="checkbox" label=${t('privacy.understood')} />
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
        <button type="submit" class="danger" disabled=${form.busy || !form.values.understood}>${t('privacy.erase')}</button>
      </div>
    <//>
  <//>`;
}

/**
 * A button that erases a person, with its dialogs. The result stays open when a live change of the record takes the right to
 * erase it again.
 * @param {{path: string, name: string, allowed: boolean, done: () => void}} props path: the person's record in the API
 */
export function EraseButton({ path, name, allowed, done }) {
  const [dialog, setDialog] = useState(null); // 'ask', or the erasure
  const close = () => setDialog(null);
  return html`
    ${allowed && html`<button class="quiet danger" onClick=${() => setDialog('ask')}>
      <${Icon} name="trash" size=${16} />${t('privacy.erase')}
    </button>`}
    ${dialog === 'ask' && html`<${EraseDialog} path=${path} name=${name} close=${close} done=${setDialog} />`}
    ${dialog?.id && html`<${Erased} erasure=${dialog} close=${() => (close(), done())} />`}`;
}

function EndDialog({ path, close, done }) {
  const form = useForm({ ended_at: new Date().toISOString().slice(0, 10) }, async ({ ended_at: day }) => {
    done(await api.put(`${path}/relationship`, { ended_at: `${day}T00:00:00Z` }));
  });
  return html`<${Dialog} title=${t('privacy.end')} close=${close}><${Form} form=${form}>
    <p>${t('privacy.end_text')}</p>
    <${DateField} form=${form} name="ended_at" label=${t('privacy.ended_at')} hint=${t('privacy.end_hint')} />
    <${Actions} form=${form} label=${t('privacy.end')} cancel=${close} />
  <//><//>`;
}

/** An end of the relationship far in the past, which a second person confirms or rejects. */
function ProposedEnd({ path, one, done }) {
  const { ended_at: day, proposed_at: at, proposed_by: by } = one.proposed_end;
  const mine = by === myId();
  const act = useAction(async (end) => done(await api.put(`${path}/relationship`, { ended_at: end })));
  return html`<div class="proposed-end stack">
    <${Notice} title=${t('privacy.end_waits', { date: date(day) })}>
      ${t('privacy.end_by')} <${Person} id=${by} signIn /> · ${dateTime(at)}.${' '}
      ${t(mine ? 'privacy.end_waits_mine' : 'privacy.end_waits_text')}
    <//>
    <div class="row">
      ${!mine && html`<button class="confirm-end" disabled=${act.busy} onClick=${() => act.run(day)}>${t('privacy.end_confirm')}</button>`}
      <button class="quiet danger" disabled=${act.busy} onClick=${() => act.run(one.ended_at)}>
        ${t(mine ? 'privacy.end_withdraw' : 'privacy.end_reject')}
      </button>
    </div>
  </div>`;
}

/** How long the data of a customer must be kept. */
function Retention({ path, rights, load }) {
  const [ending, setEnding] = useState(false);
  const changed = (now) => {
    setEnding(false);
    load.reload();
    toast(t(now.proposed_end ? 'privacy.end_proposed' : 'saved'));
  };
  const resume = useAction(async () => changed(await api.put(`${path}/relationship`, { ended_at: null })));
  const rows = (one) => [
    [t('privacy.customer'), t(one.customer ? 'do.yes' : 'do.no')],
    [t('privacy.ended_at'), one.ended_at && date(one.ended_at)],
    [t('privacy.retention_until'), one.retention_until && date(one.retention_until)],
    [t('privacy.on_hold'), t(one.on_hold ? 'do.yes' : 'do.no')],
    [t('privacy.erasable'), t(one.erasable ? 'do.yes' : 'do.no')],
  ];
  const button = (one) => (one.ended_at
    ? html`<button class="quiet" disabled=${resume.busy} onClick=${resume.run}>${t('privacy.resume')}</button>`
    : html`<button class="quiet" onClick=${() => setEnding(true)}>${t('privacy.end')}</button>`);
  return html`<${Card} title=${t('privacy.retention')}>
    <${Loaded} load=${load} lines=${3}>${(one) => html`<${Facts} list rows=${rows(one)} />
      ${one.proposed_end
        ? rights.update && html`<${ProposedEnd} path=${path} one=${one} done=${changed} />`
        : rights.update && html`<div class="row">${button(one)}</div>`}`}<//>
    ${ending && html`<${EndDialog} path=${path} close=${() => setEnding(false)} done=${changed} />`}
  <//>`;
}

function HoldDialog({ path, hold, close, done }) {
  const form = useForm({ reason: hold?.reason ?? '', until: hold?.until ?? '' }, async ({ reason, until }) => {
    await api.put(`${path}/legal-hold`, { reason: reason.trim(), ...(until && { until }) });
    done();
  });
  return html`<${Dialog} title=${t('privacy.hold')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="reason" label=${t('privacy.hold_reason')} hint=${t('privacy.hold_hint')} autocomplete="off"
      maxlength="500" />
    <${DateField} form=${form} name="until" optional label=${t('privacy.hold_until')} />
    <${Actions} form=${form} label=${t('do.save')} cancel=${close} />
  <//><//>`;
}

/** Reads the legal hold of a customer; null when there is none, false when the caller may not read it. */
async function readHold(path) {
  try {
    const hold = await api.get(`${path}/legal-hold`);
    return hold.reason ? hold : null; // also one that has ended
  } catch (error) {
    if (error.status === 403) return false;
    throw error;
  }
}

function Hold({ path, changed }) {
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => readHold(path), [path]);
  const saved = () => {
    setEditing(false);
    load.reload();
    changed();
    toast(t('saved'));
  };
  const lift = useAction(async () => {
    if (!(await confirm({ title: t('privacy.lift'), text: t('privacy.lift_text'), action: t('privacy.lift') }))) return;
    await api.delete(`${path}/legal-hold`);
    saved();
  });
  const rows = (hold) => [
    [t('privacy.hold_reason'), hold.reason],
    [t('privacy.hold_until'), hold.until ? date(hold.until) : t('privacy.no_end')],
    [t('field.created_at'), dateTime(hold.created_at)],
  ];
  if (load.data === false) return null;
  return html`<${Card} title=${t('privacy.hold')}>
    <p class="fine">${t('privacy.hold_text')}</p>
    <${Loaded} load=${load} lines=${2}>${(hold) => html`
      ${hold && html`<${Facts} list rows=${rows(hold)} />`}
      <div class="row">
        <button class="quiet" onClick=${() => setEditing(true)}>${t(hold ? 'do.edit' : 'privacy.hold_set')}</button>
        ${hold && html`<button class="quiet danger" disabled=${lift.busy} onClick=${lift.run}>${t('privacy.lift')}</button>`}
      </div>
      ${editing && html`<${HoldDialog} path=${path} hold=${hold} close=${() => setEditing(false)} done=${saved} />`}`}<//>
  <//>`;
}

/** The view of a customer's data protection: retention, legal hold, export and erasure. */
export function CustomerPrivacy({ customer, name, rights, changed }) {
  const path = `/v1/customers/${customer.id}`;
  const isStaff = may('customers', 'read_all');
  const load = useLoad(() => (isStaff ? api.get(`${path}/relationship`) : null), [customer.id]);
  return html`<div class="grid-2">
    ${isStaff && html`<div class="stack"><${Retention} path=${path} rights=${rights} load=${load} />
      ${rights.delete && html`<${Hold} path=${path} changed=${load.reload} />`}</div>`}
    <${Card} title=${t('privacy.data')}>
      <p class="fine">${t('privacy.data_text')}</p>
      <div class="row"><${ExportButton} path=${path} />
        <${EraseButton} path=${path} name=${name} allowed=${rights.delete} done=${changed} /></div>
    <//>
  </div>`;
}

/** The data of a user: export, and erasure for administrators. */
export const UserPrivacy = ({ userId, name, erase, done }) => html`<${Card} title=${t('privacy.data')}>
  <p class="fine">${t(erase ? 'privacy.data_text' : 'privacy.own_text')}</p>
  <div class="row"><${ExportButton} path=${`/v1/users/${userId}`} />
    <${EraseButton} path=${`/v1/users/${userId}`} name=${name} allowed=${erase} done=${done} /></div>
<//>`;
