import { html, useEffect, useId, useLayoutEffect, useRef, useState } from '../lib.js';
import { api, idempotencyKey } from '../api.js';
import { inboxChanged } from '../conversations.js';
import { dateTime } from '../format.js';
import { LANGUAGES, language, t } from '../i18n.js';
import { useLoad } from '../load.js';
import { useNotifications } from '../live_updates.js';
import { learnPeople, myId, nameOf, usePeople } from '../people.js';
import { loadStyle } from '../style.js';
import { drafts } from '../unsaved.js';
import { Avatar } from '../ui/display.js';
import { Loaded, toast, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { PageHead } from '../ui/page.js';
import { Person } from '../ui/person.js';
import { CustomerPanel } from './inbox_customer.js';
import { Message } from './thread.js';

await loadStyle('chats');

const PAGE = 100; // messages and notes; the server's limit of a page
const MAX_LENGTH = 10_000;
const HOUR = 3600_000;

/** Reads a thread with its messages and notes. */
async function loadThread(id) {
  const path = `/v1/inbox/${id}`;
  const [{ record: thread, etag }, messages, notes] = await Promise.all([
    api.withETag(path), api.get(`${path}/messages`, { limit: PAGE }), api.get(`${path}/notes`, { limit: PAGE, sort: '-created_at' }),
  ]);
  learnPeople(messages);
  return { thread, etag, messages: messages.reverse(), notes: notes.data.reverse() };
}

/** Messages and notes in the order in which they were written. */
function inOrder({ messages, notes }) {
  const all = [...messages.map((one) => ({ at: one.createdAt, message: one })), ...notes.map((one) => ({ at: one.created_at, note: one }))];
  return all.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

const Note = ({ note }) => html`<li class="internal-note">
  <span class="sender"><${Icon} name="audit" size=${14} /> ${t('inbox.note_by')} <${Person}
    id=${note.author_id} /> · ${dateTime(note.created_at)}</span>
  <p>${note.content}</p>
</li>`;

/** The times until which a thread can rest: [value, text]. */
function pauses() {
  const tomorrow = new Date();
  tomorrow.setDate(tomorrow.getDate() + 1);
  tomorrow.setHours(8, 0, 0, 0);
  const week = new Date(tomorrow.getTime() + 6 * 24 * HOUR);
  return [[new Date(Date.now() + 3 * HOUR), 'hours'], [tomorrow, 'tomorrow'], [week, 'week']]
    .map(([date, name]) => [date.toISOString(), t(`inbox.snooze.${name}`)]);
}

/** The state of a thread, who answers, and until when it rests. */
const State = ({ thread }) => html`<span class="row">
  <span class="badge info">${t(`inbox.state.${thread.state}`)}</span>
  <span>${thread.assignee ? t('inbox.answers', { name: nameOf(thread.assignee) }) : t('inbox.nobody')}</span>
  ${isSnoozed(thread) && html`<span>${t('inbox.until', { date: dateTime(thread.snoozed_until) })}</span>`}
</span>`;

const isSnoozed = (thread) => thread.snoozed_until && new Date(thread.snoozed_until) > new Date();

/** The actions of a thread: assign, rest, close. */
function Actions({ thread, change, busy }) {
  const mine = thread.assignee === myId();
  const closed = thread.state === 'closed';
  return html`
    <button type="button" class="quiet" disabled=${busy}
      onClick=${() => change({ assignee: mine ? null : myId() })}>${t(mine ? 'inbox.give_back' : 'inbox.take')}</button>
    ${!closed && (isSnoozed(thread)
      ? html`<button type="button" class="quiet" disabled=${busy}
        onClick=${() => change({ snoozed_until: null })}>${t('inbox.wake')}</button>`
      : html`<select aria-label=${t('inbox.snooze')} value="" disabled=${busy}
        onChange=${(event) => change({ snoozed_until: event.target.value })}>
          <option value="">${t('inbox.snooze')}</option>
          ${pauses().map(([value, text]) => html`<option key=${text} value=${value}>${text}</option>`)}
        </select>`)}
    <button type="button" class="quiet" disabled=${busy} onClick=${() => change({ state: closed ? 'open' : 'closed' })}>
      ${t(closed ? 'inbox.reopen' : 'inbox.close')}
    </button>`;
}

let templates; // the load of the templates, shared by all threads of the page

const loadTemplates = () => (templates ??= api.get('/v1/inbox/templates').then((answer) => answer.templates, (error) => {
  templates = undefined;
  throw error;
}));

/** The texts to start an answer from, in a language that the writer chooses. */
function Templates({ pick }) {
  const [tag, setTag] = useState(language.get());
  const load = useLoad(loadTemplates);
  const [which, ofLanguage] = [useId(), useId()];
  const choose = (event) => {
    const template = load.data?.find((one) => one.id === event.target.value);
    if (template) pick(template.texts[tag]);
  };
  return html`
    <label class="sr" for=${which}>${t('inbox.template')}</label>
    <select id=${which} class="small" value="" onChange=${choose}>
      <option value="">${t('inbox.template')}</option>
      ${(load.data ?? []).map((one) => html`<option key=${one.id} value=${one.id}>${one.texts[tag]}</option>`)}
    </select>
    <label class="sr" for=${ofLanguage}>${t('inbox.template_language')}</label>
    <select id=${ofLanguage} class="small" value=${tag} onChange=${(event) => setTag(event.target.value)}>
      ${Object.entries(LANGUAGES).map(([key, name]) => html`<option key=${key} value=${key} selected=${key === tag}>${name}</option>`)}
    </select>`;
}

const KINDS = ['answer', 'note'];

/** Writes an answer to the customer, or a note that customers never see. */
function Writer({ id, done }) {
  const [kind, setKind] = useState('answer');
  const draftOf = (one) => `inbox ${one} ${id}`;
  const [texts, setTexts] = useState(() => Object.fromEntries(KINDS.map((one) => [one, drafts.read(draftOf(one)) ?? ''])));
  const latest = useRef();
  latest.current = texts;
  const text = texts[kind]; // The text of a note must not become an answer.
  const field = useId();
  const key = useRef(idempotencyKey());
  const type = (value, of = kind) => {
    setTexts((was) => ({ ...was, [of]: value }));
    if (value) drafts.write(draftOf(of), value);
    else drafts.remove(draftOf(of));
  };
  const choose = (next) => {
    setKind(next);
    key.current = idempotencyKey();
  };
  const send = useAction(async () => {
    const path = `/v1/inbox/${id}/${kind === 'note' ? 'notes' : 'messages'}`;
    await api.post(path, { content: text.trim() }, { headers: { 'Idempotency-Key': key.current } });
    key.current = idempotencyKey();
    if (latest.current[kind] === text) type('', kind); // not what was typed meanwhile
    done();
  });
  const submit = (event) => {
    event.preventDefault();
    if (text.trim()) send.run();
  };
  const onKeyDown = (event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit(event);
  return html`<form class=${`writer ${kind}`} onSubmit=${submit}>
    <div class="row">
      ${KINDS.map((one) => html`<button key=${one} type="button" class=${one === kind ? 'small' : 'quiet small'}
        aria-pressed=${one === kind} onClick=${() => choose(one)}>${t(`inbox.write.${one}`)}</button>`)}
      <span class="grow"></span>
      ${kind === 'answer' && html`<${Templates} pick=${type} />`}
    </div>
    <label class="sr" for=${field}>${t(`inbox.write.${kind}`)}</label>
    <textarea id=${field} rows="3" maxlength=${MAX_LENGTH} value=${text} onKeyDown=${onKeyDown}
      placeholder=${t(`inbox.write_hint.${kind}`)} onInput=${(event) => type(event.target.value)}></textarea>
    <div class="actions"><button type="submit" disabled=${send.busy || !text.trim()}>${t(`inbox.send.${kind}`)}</button></div>
  </form>`;
}

/** One thread of the inbox, with its customer beside it. */
export default function InboxThread({ id }) {
  usePeople();
  const load = useLoad(() => loadThread(id), [id]);
  const box = useRef();
  useNotifications(() => load.reload());
  useEffect(() => inboxChanged, []); // What was read here, too, may change the list.
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [load.data?.messages.length, load.data?.notes.length]);
  const done = () => {
    load.reload();
    inboxChanged();
  };
  const change = useAction(async (changes) => {
    await api.patch(`/v1/inbox/${id}`, changes, { ifMatch: load.data.etag });
    toast(t('saved'));
    done();
  }, (error) => {
    toast(error.message, 'bad');
    load.reload(); // Another member of the staff may have changed it.
  });
  const thread = load.data?.thread;
  const name = thread ? nameOf(thread.user_id) : t('chats.one');
  const rows = load.data ? inOrder(load.data) : [];
  return html`
    <${PageHead} title=${html`<bdi>${name}</bdi>`} plainTitle=${name} back=${['/inbox', t('nav.inbox')]}
      picture=${html`<${Avatar} name=${name} />`} note=${thread && html`<${State} thread=${thread} />`}>
      ${thread && html`<${Actions} thread=${thread} change=${change.run} busy=${change.busy} />`}
    <//>
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="conversation">
      <section class="thread" aria-label=${name}>
        <div class="messages" ref=${box} tabindex="0" role="log" aria-label=${t('chats.messages')}>
          <ol>${rows.map((one, i) => (one.note
            ? html`<${Note} key=${one.note.id} note=${one.note} />`
            : html`<${Message} key=${one.message.id} message=${one.message} before=${rows[i - 1]?.message} participants=${3} />`))}</ol>
        </div>
        <${Writer} id=${id} done=${done} />
      </section>
      <${CustomerPanel} userId=${thread.user_id} />
    </div>`}<//>`;
}
