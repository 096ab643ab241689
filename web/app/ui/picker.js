import { html, useId, useLayoutEffect, useRef, useState } from '../lib.js';
import { mayAny } from '../access.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { containing, useDebounced } from '../list.js';
import { learnUsers, myId, nameOf, signInNameOf, usePeople } from '../people.js';
import { ignoreHeldEnter } from './held_enter.js';

const SHOWN = 8;
const isId = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text.trim());

/** The suggestions below a combobox. */
function Suggestions({ id, label, rows, at, hidden, choose }) {
  const onMouseDown = (row) => (event) => {
    event.preventDefault(); // The field keeps the focus.
    choose(row);
  };
  return html`<ul id=${`${id}-list`} role="listbox" aria-label=${label} hidden=${hidden}>
    ${rows.map((row, i) => html`
      <li key=${row.id} id=${`${id}-${i}`} role="option" aria-selected=${i === at} onMouseDown=${onMouseDown(row)}>
        <bdi class="person-name">${row.name}</bdi>${row.note && html`<bdi class="fine">${row.note}</bdi>`}
      </li>`)}
  </ul>`;
}

/**
 * A text field with suggestions, as the ARIA practices describe a combobox.
 * @param {{label: string, find: (text: string) => Promise<{id: string, name: string, note?: string}[]>,
 *   pick: (found: {id: string, name: string}) => void, chosen?: string, error?: string, hint?: string, name?: string,
 *   several?: boolean, onType?: (text: string) => void, whole?: boolean, listLabel?: string, after?: any}} props
 *   pick: called with the choice, and with an empty one when the user changes its text; onType: called with the text after each
 *   key; whole: focusing the field selects its text and suggests everything; listLabel: the label as text, where it is not; after:
 *   below the field; several: the field is cleared for the next choice; the choices are shown elsewhere
 */
export function Combobox({ label, find, pick, chosen = '', error, hint, name, several, onType, whole, listLabel = label, after }) {
  const id = useId();
  const [text, setText] = useState(chosen);
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  const wanted = useRef(''); // the text to find
  const answered = useRef(''); // the text of the suggestions; another one until they fit
  const [, findSoon] = useDebounced(text, async (typed) => {
    const rows = await find(typed).then((all) => all.slice(0, SHOWN), () => []);
    if (typed !== wanted.current) return; // A later search has begun.
    answered.current = typed;
    setFound(rows);
    setAt(0);
  });
  const field = useRef();
  const picked = useRef(false); // the text is the name of the choice
  useLayoutEffect(() => {
    if (document.activeElement !== field.current) setText(chosen); // Otherwise the choice follows what is typed, with a delay.
  }, [chosen]);
  function search(typed) {
    wanted.current = typed;
    findSoon(typed);
  }
  function choose(row) {
    setText(several ? '' : row.name);
    setOpen(false);
    pick(row);
    picked.current = !several && !onType;
  }
  function onInput(event) {
    setText(event.target.value);
    setOpen(true);
    if (picked.current) pick({ id: '', name: '' }); // Another text must not stand for the former choice.
    picked.current = false;
    onType?.(event.target.value);
    search(event.target.value);
  }
  function onFocus(event) {
    if (whole) event.target.select();
    search(whole ? '' : text);
  }
  function moveBy(step) {
    if (open) return setAt((at + step + found.length) % Math.max(1, found.length));
    setOpen(true);
    return search(text);
  }
  const isAnswered = () => answered.current === wanted.current;
  function onKeyDown(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step && !open) return;
    if (step) moveBy(step);
    else if (event.key === 'Enter' && (found[at] || !isAnswered())) {
      ignoreHeldEnter();
      if (isAnswered()) choose(found[at]);
    } else if (event.key === 'Escape') {
      event.stopPropagation(); // The dialog around the field stays open.
      setOpen(false);
    } else return;
    event.preventDefault();
  }
  const aria = {
    role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': open && found.length > 0, 'aria-controls': `${id}-list`,
    'aria-activedescendant': open && found[at] ? `${id}-${at}` : undefined,
    'aria-invalid': error ? 'true' : undefined, 'aria-describedby': error ? `${id}-error` : hint ? `${id}-hint` : undefined,
  };
  return html`<div class="field lookup">
    <label for=${id}>${label}</label>
    <input id=${id} ref=${field} name=${name} autocomplete="off" spellcheck=${false} ...${aria} value=${text} onInput=${onInput}
      onFocus=${onFocus} onClick=${() => setOpen(true)} onBlur=${() => setOpen(false)} onKeyDown=${onKeyDown} />
    <${Suggestions} id=${id} label=${listLabel} rows=${found} at=${at} hidden=${!open || !found.length} choose=${choose} />
    ${hint && !error && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
    ${after}
  </div>`;
}

/** Finds records whose field contains the last word of a text. */
async function findByWord(path, field, text) {
  const word = text.trim().split(' ').pop();
  const { data } = await api.get(path, { limit: SHOWN, sort: 'last_name', ...(word && { [`search.${field}`]: containing(word) }) });
  return data;
}

async function findCustomers(text) {
  const rows = await findByWord('/v1/customers', text.includes('@') ? 'email' : 'last_name', text);
  return rows.map((row) => ({ id: row.id, name: `${row.first_name} ${row.last_name}`.trim(), note: row.email }));
}

async function findPersonas(text) {
  const rows = await findByWord('/v1/personas', 'last_name', text);
  return rows.map((row) => ({ id: row.id, name: `${row.first_name} ${row.last_name}`, note: row.nationality }));
}

/** Chooses a customer by name or e-mail address. */
export const CustomerPicker = ({ form, name, hint = t('customers.pick_hint') }) => html`
  <${Combobox} label=${t('customers.one')} name=${name} find=${findCustomers}
    pick=${(row) => form.set(name, row.id)} error=${form.errors[name]} hint=${hint} />`;

/** Chooses a persona by name. */
export const PersonaPicker = ({ form, name }) => html`<${Combobox} label=${t('personas.one')} name=${name} find=${findPersonas}
  pick=${(row) => form.set(name, row.id)} error=${form.errors[name]} />`;

const MAX_USERS = 100; // the server's limit for a page

/** Finds active users by display name or sign-in name. */
async function findUsers(text) {
  if (!mayAny('users')) return [];
  const page = await api.get('/v1/users', { limit: MAX_USERS, 'search.status': 'active' });
  const more = page.has_more && text
    ? await api.get('/v1/users', { limit: SHOWN, 'search.status': 'active', 'search.display_name': containing(text) })
    : { data: [] };
  const users = [...more.data, ...page.data];
  learnUsers(users);
  const ids = [...new Set(users.map((user) => user.id))];
  const matches = (id) => `${nameOf(id)} ${signInNameOf(id)}`.toLowerCase().includes(text.toLowerCase());
  return ids.filter(matches).map((id) => ({ id, name: nameOf(id), note: signInNameOf(id) }));
}

/**
 * Chooses a user by name. Users who may not list users enter an id.
 * @param {{others?: boolean, several?: boolean}} props others: leave out the user themselves
 */
export function UserPicker({ label, pick, error, chosen, others, several, hint = t('people.pick_hint') }) {
  usePeople();
  async function find(typed) {
    const text = typed.trim();
    if (isId(text)) return [{ id: text.toLowerCase(), name: nameOf(text.toLowerCase()), note: text }];
    const users = await findUsers(text);
    return users.filter((user) => !(others && user.id === myId())).map((user) => ({ ...user, note: user.note !== user.name && user.note }));
  }
  return html`<${Combobox} label=${label} find=${find} pick=${pick} error=${error} chosen=${chosen} several=${several}
    hint=${hint} />`;
}
