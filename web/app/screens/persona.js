import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may, useRights } from '../access.js';
import { country } from '../countries.js';
import { date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, usePeople } from '../people.js';
import { usePreferences } from '../preferences.js';
import { Avatar, Badge, Facts, RecordId } from '../ui/display.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { Person, personText } from '../ui/person.js';
import { UserPicker } from '../ui/picker.js';
import { WhoSees } from '../ui/who_sees.js';
import { PersonaGraph } from './persona_graph.js';
import { LinkDialog, PersonaDialog, personaName } from './persona_form.js';

/** Loads the links of a persona with the linked personas; relation is the other persona's role. */
async function loadLinks(id) {
  const { data } = await api.get(`/v1/personas/${id}/links`, { limit: 100 });
  return Promise.all(data.map(async (link) => {
    const outgoing = link.persona_id === id;
    const other = outgoing ? link.linked_persona_id : link.persona_id;
    const persona = await api.get(`/v1/personas/${other}`).catch(() => ({ id: other })); // The caller may not be allowed to read it.
    return {
      id: link.id, pending: link.status === 'pending', relation: outgoing ? link.relation : link.inverse_relation, persona,
    };
  }));
}

/** Runs an action, reports its result as a toast, and calls done after a success. */
async function run(action, done) {
  try {
    await action();
    done();
    toast(t('saved'));
  } catch (error) {
    toastError(error);
  }
}

/** Asks for confirmation, then runs an action. */
async function confirmAndRun(action, text, perform, done) {
  if (await confirm({ title: action, text, action })) await run(perform, done);
}

function Link({ link, accept, remove }) {
  const name = personaName(link.persona);
  const facts = [term('relation', link.relation), date(link.persona.date_of_birth)].filter(Boolean).join(' · ');
  return html`<li>
    <${Avatar} name=${name} size="s" />
    <span class="grow two-lines">
      <a class="plain" href=${`/personas/${link.persona.id}`}>${name || t('personas.hidden')}</a><span>${facts}</span>
    </span>
    ${link.pending && html`<${Badge} value=${t('personas.pending')} tone="warn" />`}
    ${accept && html`<button class="quiet small" onClick=${accept}>${t('personas.accept_link')}</button>`}
    ${remove && html`<button class="bare" aria-label=${t('personas.unlink_who', { name })} onClick=${remove}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

function Links({ persona, rights }) {
  const [adding, setAdding] = useState(false);
  const load = useLoad(() => loadLinks(persona.id), [persona.id]);
  const path = (link) => `/v1/personas/${persona.id}/links/${link.id}`;
  const accept = (link) => confirmAndRun(
    t('personas.accept_link'),
    t('personas.accept_link_text', { name: personaName(link.persona), relation: term('relation', link.relation) }),
    () => api.post(`${path(link)}/accept`), load.reload,
  );
  const remove = (link) => confirmAndRun(
    t('personas.unlink'), t('personas.unlink_text', { name: personaName(link.persona) }), () => api.delete(path(link)), load.reload,
  );
  const close = () => setAdding(false);
  const added = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  const add = rights.update && html`<button class="quiet small" onClick=${() => setAdding(true)}>
    <${Icon} name="link" size=${14} />${t('personas.link')}
  </button>`;
  const row = (link) => html`<${Link} key=${link.id} link=${link} remove=${rights.update && (() => remove(link))}
    accept=${link.pending && may('personas', 'update') && (() => accept(link))} />`;
  return html`<${Card} title=${t('personas.links')} aside=${add}>
    <${Loaded} load=${load} lines=${5}>${(links) => (links.length
      ? html`<${PersonaGraph} persona=${persona} links=${links} /><ul class="items">${links.map(row)}</ul>`
      : html`<${Empty} icon="link" title=${t('personas.no_links')}>${t('personas.no_links_text')}<//>`)}<//>
    ${adding && html`<${LinkDialog} persona=${persona} close=${close} done=${added} />`}
  <//>`;
}

function LinkedUser({ row, remove }) {
  return html`<li>
    <${Avatar} name=${nameOf(row.user_id)} size="s" />
    <span class="grow"><${Person} id=${row.user_id} signIn /></span>
    ${row.status === 'pending' && html`<${Badge} value=${t('personas.pending')} tone="warn" />`}
    ${remove && html`<button class="bare" aria-label=${`${t('personas.unlink_user')}: ${personText(row.user_id)}`} onClick=${remove}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

/** The users who are linked to a persona. */
function Users({ persona, rights }) {
  usePeople();
  const path = `/v1/personas/${persona.id}/users`;
  const load = useLoad(async () => (await api.get(path, { limit: 100 })).data, [persona.id]);
  const add = ({ id }) => run(() => api.post(path, { user_id: id }), load.reload);
  const remove = (id) => confirmAndRun(t('personas.unlink_user'), personText(id), () => api.delete(`${path}/${id}`), load.reload);
  const list = (rows) => html`<ul class="items">${rows.map((row) => html`
    <${LinkedUser} key=${row.user_id} row=${row} remove=${rights.update && (() => remove(row.user_id))} />`)}</ul>`;
  return html`<${Card} title=${t('personas.users')}>
    <${Loaded} load=${load} lines=${2}>${(rows) => html`
      ${rows.length ? list(rows) : html`<p class="none">${t('personas.no_users')}</p>`}
      ${rights.update && html`<${UserPicker} several label=${t('personas.link_user')} pick=${add} />`}`}<//>
  <//>`;
}

function PersonFacts({ persona }) {
  return html`<${Card} title=${t('customers.person')}><${Facts} list rows=${[
    [t('field.date_of_birth'), date(persona.date_of_birth)],
    persona.date_of_death && [t('field.date_of_death'), date(persona.date_of_death)],
    [t('field.nationality'), country(persona.nationality)],
    persona.hash_id && [t('field.hash_id'), persona.hash_id],
    [t('field.created_at'), dateTime(persona.created_at)],
    [t('field.id'), html`<${RecordId} id=${persona.id} />`],
  ]} /><//>`;
}

/** One persona: facts, linked users, and linked personas. */
export default function Persona({ id }) {
  usePreferences();
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.withETag(`/v1/personas/${id}`), [id]);
  const rights = useRights('personas', id);
  const persona = load.data?.record;
  const name = persona ? personaName(persona) : t('personas.one');
  const close = () => setEditing(false);
  const saved = () => {
    close();
    load.reload();
    toast(t('saved'));
  };
  return html`
    <${PageHead} title=${name} back=${['/personas', t('nav.personas')]}
      picture=${persona && html`<${Avatar} name=${name} size="xl" />`}
      note=${persona && html`<${Badge} group="active" value=${persona.active ? 'active' : 'inactive'} />`}>
      ${rights.update && persona && html`<button class="quiet" onClick=${() => setEditing(true)}>
        <${Icon} name="edit" size=${16} />${t('do.edit')}
      </button>`}
      <${WhoSees} type="personas" id=${id} />
    <//>
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="grid-main">
      <${Links} persona=${persona} rights=${rights} />
      <div class="stack">
        <${PersonFacts} persona=${persona} />
        <${Users} persona=${persona} rights=${rights} />
      </div>
    </div>`}<//>
    ${editing && html`<${PersonaDialog} persona=${persona} etag=${load.data.etag} close=${close} done=${saved} />`}`;
}
