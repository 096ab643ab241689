import { html, useEffect, useId, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { mayAny } from '../access.js';
import { conversations } from '../conversations.js';
import { t, term } from '../i18n.js';
import { containing, useDebounced } from '../list.js';
import { usePeople } from '../people.js';
import { go } from '../router.js';
import { menu, menuPath } from '../screens.js';
import { plainChatName } from './chat_name.js';
import { Dialog } from './dialog.js';
import { Icon } from './icon.js';

const SHOWN = 5; // of each kind
const MIN_SEARCH = 2; // characters before the server is searched

const contains = (name, text) => name.toLowerCase().includes(text.toLowerCase());
const fullName = (row) => [row.first_name, row.last_name].filter(Boolean).join(' ');

/** The screens by their titles; this needs no request. */
const findScreens = (text) => [...menu('main'), ...menu('admin')]
  .map((row) => ({ path: menuPath(row), name: t(row.title), icon: row.icon }))
  .filter((row) => contains(row.name, text));

/** The loaded chats by their participants; this needs no request. */
const findChats = (text) => (conversations.get()?.chats ?? [])
  .map((chat) => ({ path: `/chats/${chat.id}`, name: plainChatName(chat), icon: 'chats', note: t('chats.one') }))
  .filter((row) => contains(row.name, text))
  .slice(0, SHOWN);

/** Records whose first or last name contains the last word, and whose full name contains every word. */
async function findRecords(type, text, note) {
  if (!mayAny(type)) return [];
  const words = text.split(/\s+/);
  const search = (field) => api.get(`/v1/${type}`, { limit: SHOWN, sort: 'last_name', [`search.${field}`]: containing(words.at(-1)) });
  const pages = await Promise.all([search('last_name'), search('first_name')]);
  const found = new Map(pages.flatMap((page) => page.data).map((one) => [one.id, one]));
  return [...found.values()]
    .filter((one) => words.every((word) => contains(fullName(one), word)))
    .slice(0, SHOWN)
    .map((one) => ({ path: `/${type}/${one.id}`, name: fullName(one), icon: type, note: note(one) }));
}

async function searchServer(text) {
  if (text.length < MIN_SEARCH) return [];
  const found = await Promise.all([
    findRecords('customers', text, (one) => term('kyc_status', one.kyc_status)),
    findRecords('personas', text, () => t('personas.one')),
  ]).catch(() => []);
  return found.flat();
}

/** Navigates by typing: to screens and chats at once, to customers and personas as the server finds them. */
export function CommandPalette({ close }) {
  usePeople();
  const id = useId();
  const [text, setText] = useState('');
  const [remote, setRemote] = useState([]);
  const [at, setAt] = useState(0);
  const list = useRef();
  const latest = useRef('');
  const [, search] = useDebounced('', async (typed) => {
    latest.current = typed;
    const found = await searchServer(typed.trim());
    if (latest.current === typed) setRemote(found);
  });
  const trimmed = text.trim();
  const local = trimmed ? [...findScreens(trimmed), ...findChats(trimmed)] : findScreens('');
  const rows = trimmed.length < MIN_SEARCH ? local : [...local, ...remote];
  useEffect(() => setAt(0), [text]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at, rows.length]);
  function open(row) {
    close();
    go(row.path);
  }
  function onInput(event) {
    setText(event.target.value);
    search(event.target.value);
  }
  function onKeyDown(event) {
    const step = { ArrowDown: 1, ArrowUp: rows.length - 1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      setAt((at + step) % rows.length);
    } else if (event.key === 'Enter' && rows[at]) {
      event.preventDefault();
      open(rows[at]);
    }
  }
  return html`<${Dialog} title=${t('palette.title')} close=${close} class="palette">
    <div class="palette-field">
      <${Icon} name="search" />
      <input role="combobox" autofocus autocomplete="off" spellcheck=${false} aria-label=${t('palette.label')}
        placeholder=${t('palette.label')} aria-autocomplete="list" aria-expanded=${rows.length > 0} aria-controls=${id}
        aria-activedescendant=${rows[at] ? `${id}-${at}` : undefined} value=${text} onInput=${onInput} onKeyDown=${onKeyDown} />
    </div>
    <ul id=${id} ref=${list} role="listbox" aria-label=${t('palette.results')} hidden=${!rows.length}>
      ${rows.map((row, i) => html`
        <li key=${row.path} id=${`${id}-${i}`} role="option" aria-selected=${i === at} onMouseMove=${() => i !== at && setAt(i)}
          onClick=${() => open(row)}>
          <${Icon} name=${row.icon} size=${16} /><bdi class="grow">${row.name}</bdi>
          ${row.note && html`<span class="fine">${row.note}</span>`}
        </li>`)}
    </ul>
    ${!rows.length && html`<p class="none palette-none" role="status">${t('palette.nothing')}</p>`}
  <//>`;
}
