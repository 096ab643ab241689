import { html, useId, useLayoutEffect, useRef, useState } from '../lib.js';
import { may } from '../access.js';
import { api } from '../api.js';
import { namesOf } from '../customers.js';
import { t } from '../i18n.js';
import { useDebounced } from '../list.js';
import { learnUsers, myId, nameOf, signInNameOf, usePeople } from '../people.js';
import { ignoreHeldEnter } from './held_enter.js';
import { afterPress } from './press.js';

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
 *   several?: boolean, onType?: (text: string) => void, whole?: boolean, listLabel?: string, after?: any, create?: any,
 *   invalid?: string}} props
 *   pick: called with the choice, and with an empty one when the user changes its text; onType: called with the text after each
 *   key; whole: focusing the field selects its text and suggests everything; listLabel: the label as text, where it is not; after:
 *   below the field; several: the field is cleared for the next choice; the choices are shown elsewhere; create: offered when
 *   nothing was found; invalid: why the form cannot be sent with the text
 */
export function Combobox({
  label, find, pick, chosen = '', error, hint, name, several, onType, whole, listLabel = label, after, create, invalid = '',
}) {
  const id = useId();
  const [text, setText] = useState(chosen);
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  const wanted = useRef(''); // the text to find
  const answered = useRef(''); // the text of the suggestions; another one until they fit
  const [state, setState] = useState(''); // '', 'none' or the message of an error
  const [, findSoon] = useDebounced(text, async (typed) => {
    const [rows, problem] = await find(typed).then((all) => [all.slice(0, SHOWN), ''], (failed) => [[], failed.message]);
    if (typed !== wanted.current) return; // A later search has begun.
    answered.current = typed;
    setFound(rows);
    setState(problem || (rows.length || !typed.trim() ? '' : 'none'));
    setAt(0);
  });
  const field = useRef();
  useLayoutEffect(() => field.current.setCustomValidity(invalid), [invalid]);
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
    setState('');
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
  const close = () => document.activeElement !== field.current && setOpen(false);
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
      onFocus=${onFocus} onClick=${() => setOpen(true)} onBlur=${() => afterPress(close)} onKeyDown=${onKeyDown} />
    <${Suggestions} id=${id} label=${listLabel} rows=${found} at=${at} hidden=${!open || !found.length} choose=${choose} />
    <small class="lookup-state" role="status">${open && state && html`
      ${state === 'none' ? t('picker.none', { text: text.trim() }) : state} ${state === 'none' && create}`}</small>
    ${hint && !error && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
    ${after}
  </div>`;
}

const FIND_LIMIT = 20; // the server's limit for one type; more than are shown, because some are left out
const MAX_TEXT = 200; // characters that a search takes

/** Finds records of a type by any of their words; without a text, the first ones of the list. */
async function findRecords(type, text, first) {
  const q = text.trim().slice(0, MAX_TEXT);
  if (!q) return first();
  const { groups } = await api.get('/v1/search', { q, types: type, limit: FIND_LIMIT });
  return (groups[0]?.rows ?? []).map(({ id, title, subtitle }) => ({ id, name: title || id, note: subtitle }));
}

const firstOf = (path, note) => async () => {
  const { data } = await api.get(path, { limit: SHOWN, sort: 'last_name' });
  return data.map((row) => ({ id: row.id, name: namesOf(row), note: row[note] }));
};

const findCustomers = (text) => findRecords('customers', text, firstOf('/v1/customers', 'email'));
const findPersonas = (text) => findRecords('personas', text, firstOf('/v1/personas', 'nationality'));

/** The offer to create what was not found, in another tab: the form of the field stays as it is. */
const Create = ({ type, path, text }) => may(type, 'create') && html`
  <a href=${path} target="_blank" rel="noopener" onMouseDown=${(event) => event.preventDefault()}>${text}</a>`;

/** Chooses a customer by any word of the record, such as a name, an e-mail address or a town. */
export const CustomerPicker = ({ form, name, hint = t('customers.pick_hint') }) => html`
  <${Combobox} label=${t('customers.one')} name=${name} find=${findCustomers}
    pick=${(row) => form.set(name, row.id)} error=${form.errors[name]} hint=${hint}
    create=${html`<${Create} type="customers" path="/customers?new=1" text=${t('customers.new')} />`} />`;

/** Chooses a persona by name. */
export const PersonaPicker = ({ form, name }) => html`<${Combobox} label=${t('personas.one')} name=${name} find=${findPersonas}
  pick=${(row) => form.set(name, row.id)} error=${form.errors[name]}
  create=${html`<${Create} type="personas" path="/personas?new=1" text=${t('personas.new')} />`} />`;

/** Reads active users, those with the given ids or the first ones. A search does not know the names that they sign in with. */
async function activeUsers(ids) {
  const { data } = await api.get('/v1/users', { limit: FIND_LIMIT, sort: 'display_name', 'search.status': 'active', 'search.id': ids });
  learnUsers(data);
  return data.map(({ id }) => ({ id, name: nameOf(id), note: signInNameOf(id) }));
}

/** Finds active users by their names; without a text, the first ones. */
async function findUsers(text) {
  const found = await findRecords('users', text, () => activeUsers());
  if (!text.trim() || !found.length) return found;
  const users = new Map((await activeUsers(found.map(({ id }) => id))).map((user) => [user.id, user]));
  return found.map(({ id }) => users.get(id)).filter(Boolean);
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
    hint=${hint} create=${html`<${Create} type="users" path="/admin/users" text=${t('picker.invite')} />`} />`;
}
