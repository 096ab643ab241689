import { html, useEffect, useId, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { mayAny } from '../access.js';
import { t, term } from '../i18n.js';
import { anywhere, useTyped } from '../list.js';
import { conversations } from '../live.js';
import { usePeople } from '../people.js';
import { go } from '../router.js';
import { menu } from '../screens.js';
import { Dialog } from './dialog.js';
import { Icon } from './icon.js';
import { plainChatName } from './person.js';

const SHOWN = 5;
const fits = (name, text) => name.toLowerCase().includes(text.toLowerCase());
const nameOf = (row) => [row.first_name, row.last_name].filter(Boolean).join(' ');

/** The screens, found by their names without asking the server. */
const screens = (text) => [...menu('main'), ...menu('admin')].map((row) => ({ path: row.path.replace(/\/:.*/, '') || '/', name: t(row.title), icon: row.icon })).filter((row) => fits(row.name, text));

const chats = (text) => (conversations.get() ?? []).map((chat) => ({ path: `/chats/${chat.id}`, name: plainChatName(chat), icon: 'chats', note: t('chats.one') })).filter((row) => fits(row.name, text));

/** Records whose last name, or whose first name, contains the word typed last. */
async function records(type, text, row) {
  if (!mayAny(type)) return [];
  const word = anywhere(text.split(/\s+/).pop());
  const pages = await Promise.all(['last_name', 'first_name'].map((field) => api.get(`/v1/${type}`, { limit: SHOWN, sort: 'last_name', [`search.${field}`]: word })));
  const found = new Map(pages.flatMap((page) => page.data).map((one) => [one.id, one]));
  return [...found.values()].filter((one) => text.split(/\s+/).every((part) => fits(nameOf(one), part))).slice(0, SHOWN).map(row);
}

const customers = (text) => records('customers', text, (one) => ({ path: `/customers/${one.id}`, name: nameOf(one), icon: 'customers', note: term('kyc_status', one.kyc_status) }));
const personas = (text) => records('personas', text, (one) => ({ path: `/personas/${one.id}`, name: nameOf(one), icon: 'personas', note: t('personas.one') }));

/** Goes anywhere by typing: screens and chats at once, customers and personas as the server finds them. */
export function Palette({ close }) {
  usePeople();
  const id = useId();
  const [text, setText] = useState('');
  const [remote, setRemote] = useState([]);
  const [at, setAt] = useState(0);
  const list = useRef();
  const wanted = useRef('');
  const [, look] = useTyped('', async (typed) => {
    wanted.current = typed.trim();
    const found = wanted.current.length < 2 ? [] : (await Promise.all([customers(wanted.current), personas(wanted.current)]).catch(() => [])).flat();
    if (wanted.current === typed.trim()) setRemote(found);
  });
  const near = text.trim() ? [...screens(text.trim()), ...chats(text.trim()).slice(0, SHOWN)] : screens('');
  const rows = text.trim().length < 2 ? near : [...near, ...remote];
  useEffect(() => setAt(0), [text]);
  useEffect(() => list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }), [at, rows.length]);
  function open(row) {
    close();
    go(row.path);
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
  return html`<${Dialog} title=${t('finder.title')} close=${close} class="palette">
    <div class="palette-field"><${Icon} name="search" /><input role="combobox" autofocus autocomplete="off" spellcheck="false" aria-label=${t('finder.label')} placeholder=${t('finder.label')} aria-autocomplete="list"
      aria-expanded=${rows.length > 0} aria-controls=${id} aria-activedescendant=${rows[at] ? `${id}-${at}` : undefined} value=${text} onInput=${(event) => { setText(event.target.value); look(event.target.value); }} onKeyDown=${onKeyDown} /></div>
    <ul id=${id} ref=${list} role="listbox" aria-label=${t('finder.found')} hidden=${!rows.length}>
      ${rows.map((row, i) => html`<li key=${row.path} id=${`${id}-${i}`} role="option" aria-selected=${i === at} onMouseMove=${() => i !== at && setAt(i)} onClick=${() => open(row)}><${Icon} name=${row.icon} size=${16} /><span class="grow">${row.name}</span>${row.note && html`<span class="fine">${row.note}</span>`}</li>`)}
    </ul>
    ${!rows.length && html`<p class="none palette-none" role="status">${t('finder.nothing')}</p>`}
  <//>`;
}
