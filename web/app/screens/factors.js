import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { may, reloadMe } from '../access.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { myId } from '../people.js';
import { OnTrial, When } from '../ui/display.js';
import { confirm } from '../ui/dialog.js';
import { Empty, Loaded, Notice, toast, useAction } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { AddFactor, CodesDialog, RenameDialog } from './factor_dialogs.js';

const ICONS = { passkey: 'key', totp: 'device', recovery_codes: 'audit' };
const FEW_CODES = 3;

const isCodes = (factor) => factor.type === 'recovery_codes';
/** The factors in use, the recovery codes last. */
const activeFactors = (all) => all.filter((one) => one.status === 'active').sort((a, b) => isCodes(a) - isCodes(b));

const nameOfFactor = (factor) => factor.name || t(`factors.${factor.type}`);

function Usage({ factor }) {
  const added = html`${t('factors.added')} <${When} at=${factor.created_at} />`;
  const used = factor.last_used_at
    ? html`${t('factors.used')} <${When} at=${factor.last_used_at} />`
    : t('factors.unused');
  const type = t(`factors.${factor.type}`);
  return html`<span>${!isCodes(factor) && factor.name !== type && `${type} · `}${added} · ${used}</span>`;
}

function Factor({ factor, rename, remove, regenerate }) {
  const name = nameOfFactor(factor);
  const button = (icon, label, onClick) => onClick && html`<button class="bare" aria-label=${label} title=${label} onClick=${onClick}>
    <${Icon} name=${icon} size=${16} />
  </button>`;
  return html`<li>
    <span class="event"><${Icon} name=${ICONS[factor.type]} size=${16} /></span>
    <div class="grow two-lines">
      <span>${isCodes(factor) ? t('factors.codes_left', { n: factor.remaining ?? 0 }) : name}</span><${Usage} factor=${factor} />
    </div>
    <${OnTrial} of=${factor} />
    ${isCodes(factor)
      ? regenerate && html`<button class="quiet small" onClick=${regenerate}>${t('codes.new')}</button>`
      : html`<span class="row">
          ${button('edit', t('factors.rename_what', { name }), rename)}${button('trash', t('factors.remove_what', { name }), remove)}
        </span>`}
  </li>`;
}

/** The changes of a user's factors: {remove, regenerate}; each asks first. */
function useChanges(path, rows, reload, showCodes) {
  const remove = useAction(async (factor) => {
    const isLast = rows().filter((one) => !isCodes(one)).length === 1;
    const text = t(isLast ? 'factors.remove_last_text' : 'factors.remove_text', { name: nameOfFactor(factor) });
    if (!(await confirm({ title: t('factors.remove'), text, action: t('factors.remove') }))) return;
    await api.delete(`${path}/${factor.id}`);
    reload();
    toast(t('factors.removed'));
  });
  const regenerate = useAction(async () => {
    if (!(await confirm({ title: t('codes.new'), text: t('codes.new_text'), action: t('codes.new') }))) return;
    showCodes((await api.post(path, { type: 'recovery_codes', name: t('factors.recovery_codes') })).recovery_codes);
    reload();
  });
  return { remove: remove.run, regenerate: regenerate.run };
}

/** A user's second factors. Users change their own; administrators remove those of others. */
export function Factors({ userId }) {
  const isOwn = userId === myId();
  const path = `/v1/users/${userId}/factors`;
  const [renaming, setRenaming] = useState(null);
  const [codes, setCodes] = useState(null);
  const load = useLoad(async () => activeFactors((await api.get(path, { limit: 100 })).data), [userId]);
  const reload = () => {
    load.reload();
    if (isOwn) reloadMe().catch(() => {}); // The time limit for a second factor may have changed.
  };
  const { remove, regenerate } = useChanges(path, () => load.data, reload, setCodes);
  const added = () => {
    reload();
    toast(t('factors.saved'));
  };
  const renamed = () => {
    setRenaming(null);
    load.reload();
  };
  const mayRemove = isOwn || may('factors', 'delete');
  const few = isOwn && load.data?.some((one) => isCodes(one) && one.remaining <= FEW_CODES);
  return html`<${Card} title=${t('factors.title')}>
    <p class="fine">${isOwn ? t('factors.text') : t('factors.text_other')}</p>
    ${few && html`<${Notice} tone="warn" title=${t('codes.few')}>${t('codes.few_text')}<//>`}
    <${Loaded} load=${load} lines=${2}>${(rows) => (rows.length
      ? html`<ul class="items factors">${rows.map((one) => html`<${Factor} key=${one.id} factor=${one}
          rename=${isOwn && (() => setRenaming(one))} remove=${mayRemove && (() => remove(one))}
          regenerate=${isOwn && regenerate} />`)}</ul>`
      : html`<${Empty} icon="roles" title=${t('factors.none')}>${t(isOwn ? 'factors.none_text' : 'factors.none_other')}<//>`)}<//>
    ${isOwn && html`<${AddFactor} userId=${userId} present=${load.data ?? []} done=${added} />`}
    ${renaming && html`<${RenameDialog} path=${path} factor=${renaming} close=${() => setRenaming(null)} done=${renamed} />`}
    ${codes && html`<${CodesDialog} userId=${userId} codes=${codes} close=${() => setCodes(null)} />`}
  <//>`;
}
