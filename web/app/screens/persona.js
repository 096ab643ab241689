import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may, useRights } from '../access.js';
import { country } from '../countries.js';
import { date, dateTime } from '../format.js';
import { t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, usePeople } from '../people.js';
import { usePrefs } from '../prefs.js';
import { Avatar, Badge, Copy, Facts } from '../ui/data.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, toast, toastError } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card, PageHead } from '../ui/page.js';
import { UserPicker } from '../ui/picker.js';
import { Graph } from './graph.js';
import { LinkDialog, PersonaDialog, personaName } from './persona_form.js';

/** The links of a persona with the persons at their other ends, each with what he is to this one. */
async function loadLinks(id) {
  const { data } = await api.get(`/v1/personas/${id}/links`, { limit: 100 });
  return Promise.all(data.map(async (link) => {
    const outgoing = link.persona_id === id;
    const other = outgoing ? link.linked_persona_id : link.persona_id;
    const persona = await api.get(`/v1/personas/${other}`).catch(() => ({ id: other })); // It may be hidden from the caller.
    return { id: link.id, pending: link.status === 'pending', relation: outgoing ? link.relation : link.inverse_relation, persona };
  }));
}

async function act(question, run, done) {
  if (!(await confirm(question))) return;
  try {
    await run();
    done();
    toast(t('saved'));
  } catch (error) {
    toastError(error);
  }
}

function Links({ persona, rights }) {
  const [adding, setAdding] = useState(false);
  const load = useLoad(() => loadLinks(persona.id), [persona.id]);
  const accept = (link) => act({ title: t('personas.accept_link'), text: t('personas.accept_link_text', { name: personaName(link.persona), relation: term('relation', link.relation) }), action: t('personas.accept_link') }, () => api.post(`/v1/personas/${persona.id}/links/${link.id}/accept`), load.reload);
  const remove = (link) => act({ title: t('personas.unlink'), text: t('personas.unlink_text', { name: personaName(link.persona) }), action: t('personas.unlink') }, () => api.delete(`/v1/personas/${persona.id}/links/${link.id}`), load.reload);
  return html`<${Card} title=${t('personas.links')} aside=${rights.update && html`<button class="quiet small" onClick=${() => setAdding(true)}><${Icon} name="link" size=${14} />${t('personas.link')}</button>`}>
    <${Loaded} load=${load} lines=${5}>${(links) => (links.length
      ? html`<${Graph} persona=${persona} links=${links} />
        <ul class="items">${links.map((link) => html`<li key=${link.id}><${Avatar} name=${personaName(link.persona)} size="s" /><span class="grow two-lines"><a class="plain" href=${`/personas/${link.persona.id}`}>${personaName(link.persona) || t('personas.hidden')}</a><span>${[term('relation', link.relation), date(link.persona.date_of_birth)].filter(Boolean).join(' · ')}</span></span>
          ${link.pending && html`<${Badge} value=${t('personas.pending')} tone="warn" />`}
          ${link.pending && may('personas', 'update') && html`<button class="quiet small" onClick=${() => accept(link)}>${t('personas.accept_link')}</button>`}
          ${rights.update && html`<button class="bare" aria-label=${t('personas.unlink_who', { name: personaName(link.persona) })} onClick=${() => remove(link)}><${Icon} name="trash" size=${16} /></button>`}</li>`)}</ul>`
      : html`<${Empty} icon="link" title=${t('personas.no_links')}>${t('personas.no_links_text')}<//>`)}<//>
    ${adding && html`<${LinkDialog} persona=${persona} close=${() => setAdding(false)} done=${() => { setAdding(false); load.reload(); toast(t('saved')); }} />`}
  <//>`;
}

function Users({ persona, rights }) {
  usePeople();
  const load = useLoad(async () => (await api.get(`/v1/personas/${persona.id}/users`, { limit: 100 })).data, [persona.id]);
  async function add({ id }) {
    try {
      await api.post(`/v1/personas/${persona.id}/users`, { user_id: id });
      load.reload();
      toast(t('saved'));
    } catch (error) {
      toastError(error);
    }
  }
  const remove = (row) => act({ title: t('personas.unlink_user'), text: nameOf(row.user_id), action: t('personas.unlink_user') }, () => api.delete(`/v1/personas/${persona.id}/users/${row.user_id}`), load.reload);
  return html`<${Card} title=${t('personas.users')}>
    <${Loaded} load=${load} lines=${2}>${(rows) => html`
      ${rows.length ? html`<ul class="items">${rows.map((row) => html`<li key=${row.user_id}><${Avatar} name=${nameOf(row.user_id)} size="s" /><span class="grow">${nameOf(row.user_id)}</span>${row.status === 'pending' && html`<${Badge} value=${t('personas.pending')} tone="warn" />`}${rights.update && html`<button class="bare" aria-label=${`${t('personas.unlink_user')}: ${nameOf(row.user_id)}`} onClick=${() => remove(row)}><${Icon} name="trash" size=${16} /></button>`}</li>`)}</ul>` : html`<p class="none">${t('personas.no_users')}</p>`}
      ${rights.update && html`<${UserPicker} several label=${t('personas.link_user')} pick=${add} />`}`}<//>
  <//>`;
}

/** One person: facts, users, and how he is linked with others. */
export default function Persona({ id }) {
  usePrefs();
  const [editing, setEditing] = useState(false);
  const load = useLoad(() => api.tagged(`/v1/personas/${id}`), [id]);
  const rights = useRights('personas', id);
  const persona = load.data?.record;
  return html`
    <${PageHead} title=${persona ? personaName(persona) : t('personas.one')} back=${['/personas', t('nav.personas')]} picture=${persona && html`<${Avatar} name=${personaName(persona)} size="xl" />`} note=${persona && html`<${Badge} group="active" value=${persona.active ? 'active' : 'inactive'} />`}>
      ${rights.update && persona && html`<button class="quiet" onClick=${() => setEditing(true)}><${Icon} name="edit" size=${16} />${t('do.edit')}</button>`}
    <//>
    <${Loaded} load=${load} lines=${8}>${() => html`<div class="grid-main">
      <${Links} persona=${persona} rights=${rights} />
      <div class="stack">
        <${Card} title=${t('customers.person')}><${Facts} list rows=${[
          [t('field.date_of_birth'), date(persona.date_of_birth)], persona.date_of_death && [t('field.date_of_death'), date(persona.date_of_death)], [t('field.nationality'), country(persona.nationality)], persona.hash_id && [t('field.hash_id'), persona.hash_id],
          [t('field.created_at'), dateTime(persona.created_at)], [t('field.id'), html`<span class="code">${persona.id}</span><${Copy} text=${persona.id} label=${t('copy.id')} />`],
        ]} /><//>
        <${Users} persona=${persona} rights=${rights} />
      </div>
    </div>`}<//>
    ${editing && html`<${PersonaDialog} persona=${persona} etag=${load.data.etag} close=${() => setEditing(false)} done=${() => { setEditing(false); load.reload(); toast(t('saved')); }} />`}`;
}
