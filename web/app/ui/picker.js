import { html, useEffect, useId, useState } from '../lib.js';
import { api } from '../api.js';
import { myId } from '../access.js';
import { t } from '../i18n.js';
import { anywhere, useTyped } from '../list.js';
import { listPeople, nameOf, usePeople } from '../people.js';

const SHOWN = 8;
const isId = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text.trim());

/**
 * A field that looks something up while one types: a combobox as the ARIA practices describe it.
 * @param {{label: string, find: (text: string) => Promise<{id: string, name: string, note?: string}[]>, pick: (found: {id: string, name: string}) => void, chosen?: string, error?: string, hint?: string, name?: string, several?: boolean}} props
 *   several: what was picked is shown elsewhere, and the field is empty for the next
 */
export function Lookup({ label, find, pick, chosen = '', error, hint, name, several }) {
  const id = useId();
  const [text, setText] = useState(chosen);
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  const [, type] = useTyped(text, (wanted) => find(wanted).then((rows) => { setFound(rows.slice(0, SHOWN)); setAt(0); }, () => setFound([])));
  useEffect(() => setText(chosen), [chosen]);
  function choose(row) {
    setText(several ? '' : row.name);
    setOpen(false);
    pick(row);
  }
  function onKeyDown(event) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!open) { setOpen(true); type(text); return; }
      setAt((at + (event.key === 'ArrowDown' ? 1 : found.length - 1)) % Math.max(1, found.length));
    } else if (event.key === 'Enter' && open && found[at]) {
      event.preventDefault();
      choose(found[at]);
    } else if (event.key === 'Escape' && open) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    }
  }
  return html`<div class="field lookup">
    <label for=${id}>${label}</label>
    <input id=${id} name=${name} role="combobox" autocomplete="off" spellcheck="false" aria-autocomplete="list" aria-expanded=${open && found.length > 0} aria-controls=${`${id}-list`}
      aria-activedescendant=${open && found[at] ? `${id}-${at}` : undefined} aria-invalid=${error ? 'true' : undefined} aria-describedby=${error ? `${id}-error` : hint ? `${id}-hint` : undefined} value=${text}
      onInput=${(event) => { setText(event.target.value); setOpen(true); type(event.target.value); }} onFocus=${() => type(text)} onClick=${() => setOpen(true)} onBlur=${() => setOpen(false)} onKeyDown=${onKeyDown} />
    <ul id=${`${id}-list`} role="listbox" aria-label=${label} hidden=${!open || !found.length}>
      ${found.map((row, i) => html`<li key=${row.id} id=${`${id}-${i}`} role="option" aria-selected=${i === at} onMouseDown=${(event) => { event.preventDefault(); choose(row); }}><span>${row.name}</span>${row.note && html`<span class="fine">${row.note}</span>`}</li>`)}
    </ul>
    ${hint && !error && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${error && html`<small class="field-error" id=${`${id}-error`}>${error}</small>`}
  </div>`;
}

async function findCustomers(text) {
  const field = text.includes('@') ? 'email' : 'last_name';
  const { data } = await api.get('/v1/customers', { limit: SHOWN, sort: 'last_name', ...(text.trim() && { [`search.${field}`]: anywhere(text.trim().split(' ').pop()) }) });
  return data.map((row) => ({ id: row.id, name: `${row.first_name} ${row.last_name}`.trim(), note: row.email }));
}

/** Chooses a customer by name or e-mail. */
export const CustomerPicker = ({ form, name }) => html`<${Lookup} label=${t('customers.one')} name=${name} find=${findCustomers} pick=${(row) => form.set(name, row.id)} error=${form.errors[name]} hint=${t('customers.pick_hint')} />`;

async function findPersonas(text) {
  const { data } = await api.get('/v1/personas', { limit: SHOWN, sort: 'last_name', ...(text.trim() && { 'search.last_name': anywhere(text.trim().split(' ').pop()) }) });
  return data.map((row) => ({ id: row.id, name: `${row.first_name} ${row.last_name}`, note: row.nationality }));
}

/** Chooses a persona by name. */
export const PersonaPicker = ({ form, name }) => html`<${Lookup} label=${t('personas.one')} name=${name} find=${findPersonas} pick=${(row) => form.set(name, row.id)} error=${form.errors[name]} />`;

/** Chooses a user by what is known of him, with `others` not oneself, with `several` one after another; somebody who may not list users enters an id. */
export function UserPicker({ label, pick, error, chosen, others, several }) {
  usePeople();
  async function find(text) {
    if (isId(text)) return [{ id: text.trim().toLowerCase(), name: nameOf(text.trim().toLowerCase()), note: text.trim() }];
    const all = await listPeople();
    return all.filter((one) => `${one.name} ${one.login}`.toLowerCase().includes(text.toLowerCase()) && !(others && one.id === myId())).map((one) => ({ ...one, note: one.login !== one.name && one.login }));
  }
  return html`<${Lookup} label=${label} find=${find} pick=${pick} error=${error} chosen=${chosen} several=${several} hint=${t('people.pick_hint')} />`;
}
