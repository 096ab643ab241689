import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may } from '../access.js';
import { signInMethods } from '../auth.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { myId } from '../people.js';
import { OnTrial, When } from '../ui/display.js';
import { confirm, Dialog } from '../ui/dialog.js';
import { Empty, toast, useAction } from '../ui/feedback.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';

const nameOfIdentity = (identity) => identity.email || identity.subject;

function LinkDialog({ path, close, done }) {
  const form = useForm({ subject: '' }, async ({ subject }) => done(await api.post(path, { subject: subject.trim() })));
  return html`<${Dialog} title=${t('identities.title')} close=${close}><${Form} form=${form}>
    <${Field} form=${form} name="subject" label=${t('identities.subject')} hint=${t('identities.subject_hint')} autocomplete="off"
      autocapitalize="none" spellcheck=${false} />
    <${Actions} form=${form} label=${t('identities.add')} cancel=${close} />
  <//><//>`;
}

function Identity({ identity, remove }) {
  const used = identity.last_used_at ? html`${t('factors.used')} <${When} at=${identity.last_used_at} />` : t('factors.unused');
  return html`<li>
    <div class="grow two-lines"><span>${nameOfIdentity(identity)}</span><span>${identity.issuer} · ${used}</span></div>
    <${OnTrial} of=${identity} />
    ${remove && html`<button class="bare" aria-label=${t('identities.remove_what', { name: nameOfIdentity(identity) })} onClick=${remove}>
      <${Icon} name="trash" size=${16} />
    </button>`}
  </li>`;
}

/** The accounts at the bank's sign-in provider that sign a user in; nothing if the bank has no provider. */
export function Identities({ userId }) {
  const path = `/v1/users/${userId}/identities`;
  const [linking, setLinking] = useState(false);
  const load = useLoad(async () => {
    const { oidc } = await signInMethods();
    return oidc && (await api.get(path, { limit: 100 })).data;
  }, [userId]);
  const remove = useAction(async (one) => {
    const title = t('identities.remove');
    if (!(await confirm({ title, text: t('identities.remove_text', { name: nameOfIdentity(one) }), action: title }))) return;
    await api.delete(`${path}/${one.id}`);
    load.reload();
    toast(t('saved'));
  });
  const linked = () => {
    setLinking(false);
    load.reload();
    toast(t('saved'));
  };
  if (!load.data) return null; // Most users have no provider: a card that loads or fails would only confuse them.
  const add = may('identities', 'create') && html`<button class="quiet small" onClick=${() => setLinking(true)}>
    <${Icon} name="plus" size=${14} />${t('identities.add')}
  </button>`;
  const mayRemove = userId === myId() || may('identities', 'delete');
  return html`<${Card} title=${t('identities.title')} aside=${add}>
    ${load.data.length
      ? html`<ul class="items">${load.data.map((one) => html`<${Identity} key=${one.id} identity=${one}
          remove=${mayRemove && (() => remove.run(one))} />`)}</ul>`
      : html`<${Empty} icon="link" title=${t('identities.none')}>${t('identities.none_text')}<//>`}
    ${linking && html`<${LinkDialog} path=${path} close=${() => setLinking(false)} done=${linked} />`}
  <//>`;
}
