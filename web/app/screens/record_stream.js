import { html, useRef, useState } from '../lib.js';
import { CALL, isClient, may, mayCall } from '../access.js';
import { api } from '../api.js';
import { conversations, findChat } from '../conversations.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { firstLoad, useNotifications } from '../live_updates.js';
import { usePeople } from '../people.js';
import { Badge, When } from '../ui/display.js';
import { Loaded } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { LogText } from './task_log.js';

const KINDS = {
  message: ['chats', 'nav.messages'], decision: ['review', 'stream.decisions'], task: ['tasks', 'nav.tasks'],
  file: ['card', 'files.title'], audit: ['audit', 'nav.audit'],
};
const EACH = 30; // entries of one kind
const FIRST = 8; // entries that are shown at first
const MOST_CHATS = 3;

const ofDecision = (entry) => ({
  kind: 'decision', at: entry.changed_at, by: entry.changed_by, note: entry.reason,
  text: isClient()
    ? html`<${Badge} value=${t(`home.status.${entry.to}`)} tone="info" />`
    : html`<${Badge} group="kyc_status" value=${entry.to} />`,
});

async function decisions(path) {
  const { history } = await api.get(`${path}/kyc`);
  return history.filter(({ to }) => to).map(ofDecision);
}

async function tasks(path) {
  const { data } = await api.get(`${path}/tasks`, { limit: EACH, sort: '-created_at' });
  return data.flatMap((task) => (task.metadata?.logs ?? []).map((log) => ({
    kind: 'task', at: log.at, by: log.by, note: log.reason, text: html`<${LogText} log=${log} />`, title: task.title,
    href: `${path.slice('/v1'.length)}/tasks/${task.id}`,
  })));
}

async function files(path) {
  const answer = await api.get(`${path}/kyc/files`);
  return answer.files.slice(0, EACH).map((file) => ({
    kind: 'file', at: file.created_at, by: file.uploaded_by, text: t('stream.file', { name: file.name }),
  }));
}

/** The entries of the messages of a chat, without those of Kontor. */
const ofMessages = (page, href) => page.filter(({ type }) => type !== 'system').map((one) => ({
  kind: 'message', at: one.createdAt, by: one.senderId, note: one.content, href,
}));

/** The messages of the chats with some users that the caller takes part in. */
async function ownMessages(users) {
  if (!conversations.get()) await firstLoad();
  const chats = (conversations.get()?.chats ?? []).filter((chat) => chat.participants.some((id) => users.includes(id)));
  const pages = await Promise.all(chats.slice(0, MOST_CHATS).map(async ({ id }) => (
    ofMessages(await api.get(`/v1/chats/${id}/messages`, { limit: EACH }), `/chats/${id}`))));
  return pages.flat();
}

/**
 * The messages of a customer to the bank, and its answers, in threads of the inbox that the caller does not take part in. A thread is read
 * once until it changes, because the audit trail has each reading. Notes stay in the inbox.
 * @param {{id: string, changed_at: string}[]} threads
 * @param {Map<string, Promise<any[]>>} read the messages by thread and time of its last change
 */
async function inboxMessages(threads, read) {
  const others = threads.filter(({ id }) => !findChat(id));
  const pages = await Promise.all(others.map((thread) => {
    const key = thread.id + thread.changed_at;
    if (!read.has(key)) read.set(key, api.get(`/v1/inbox/${thread.id}/messages`, { limit: EACH }));
    return read.get(key).then((page) => ofMessages(page, `/inbox/${thread.id}`));
  }));
  return pages.flat();
}

/** The threads of the user who has created the record of a customer, for staff who answer customers. */
const threadsOf = async (id) => (may('customers', 'read_all') && mayCall('GET /v1/inbox')
  ? (await api.get('/v1/inbox', { customer_id: id, limit: MOST_CHATS })).data
  : []);

async function messages(customer, users, read) {
  const threads = await threadsOf(customer.id);
  const own = await ownMessages([...users, ...threads.map((thread) => thread.user_id)]);
  return [...own, ...await inboxMessages(threads, read)];
}

async function audit(id) {
  if (!may('audit', 'read_all') || !mayCall('GET /v1/audit')) return [];
  const { data } = await api.get('/v1/audit', { limit: EACH, 'search.rec_id': id, 'search.kind': 'change' });
  return data.map((entry) => ({ kind: 'audit', at: entry.at, by: entry.actor, text: term('audit_action', entry.action) }));
}

/** Loads what happened to a customer, the newest first. A part that the caller may not read is left out. */
async function load(customer, users, read) {
  const path = `/v1/customers/${customer.id}`;
  const parts = await Promise.allSettled([
    mayCall(CALL.kyc) && decisions(path), mayCall(CALL.customerTasks) && tasks(path), mayCall(CALL.customerFiles) && files(path),
    messages(customer, users, read), audit(customer.id),
  ]);
  if (parts.every(({ status }) => status === 'rejected')) throw parts[0].reason;
  return parts.flatMap(({ value }) => value || []).sort((a, b) => (a.at < b.at ? 1 : -1));
}

const NIL = '00000000-0000-0000-0000-000000000000'; // Kontor itself

function Entry({ entry: { kind, at, by, text, title, note, href } }) {
  const words = [title, text].filter(Boolean).map((one, i) => html`${i > 0 && ' · '}${one}`);
  return html`<li>
    <span class="event" aria-hidden="true"><${Icon} name=${KINDS[kind][0]} size=${16} /></span>
    <div class="grow">
      ${words.length > 0 && html`<p>${href ? html`<a class="plain" href=${href}>${words}</a>` : words}</p>`}
      ${note && html`<p class="prose">${href && !words.length ? html`<a class="plain" href=${href}>${note}</a>` : note}</p>`}
      <p class="fine">${by && by !== NIL && html`<${Person} id=${by} /> · `}<${When} at=${at} /></p>
    </div>
  </li>`;
}

/**
 * The activity of a customer in one stream: messages, decisions, tasks, files and the audit trail.
 * @param {{customer: any, users: string[]}} props users: whose messages belong to the customer
 */
export function RecordStream({ customer, users }) {
  usePeople();
  const [kind, setKind] = useState('');
  const [all, setAll] = useState(false);
  const read = useRef(new Map());
  const stream = useLoad(() => load(customer, users, read.current), [customer.id, customer.updated_at, users.join()]);
  useNotifications(stream.reload);
  return html`<${Card} title=${t('stream.title')}>
    <${Loaded} load=${stream}>${(entries) => {
      const chosen = entries.filter((one) => !kind || one.kind === kind);
      const shown = all ? chosen : chosen.slice(0, FIRST);
      const kinds = Object.keys(KINDS).filter((one) => entries.some((entry) => entry.kind === one));
      const chip = (value, text) => html`<button key=${value} type="button" class="chip" aria-pressed=${kind === value}
        onClick=${() => setKind(value)}>${text}</button>`;
      if (!entries.length) return html`<p class="fine">${t('stream.none')}</p>`;
      return html`
        ${kinds.length > 1 && html`<div class="chips" role="group" aria-label=${t('stream.title')}>
          ${chip('', t('stream.all'))}${kinds.map((one) => chip(one, t(KINDS[one][1])))}
        </div>`}
        <ol class="items stream">${shown.map((entry, i) => html`<${Entry} key=${entry.at + entry.kind + i} entry=${entry} />`)}</ol>
        ${shown.length < chosen.length && html`<p>
          <button class="quiet small" onClick=${() => setAll(true)}>${t('stream.more')}</button>
        </p>`}`;
    }}<//>
  <//>`;
}
