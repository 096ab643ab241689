import { html, useEffect, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { roleName, useCaller } from '../access.js';
import { chooseLanguage } from '../auth.js';
import { avatarUrl } from '../avatar.js';
import { dateTime, money, number } from '../format.js';
import { LANGUAGES, language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { myId, nameOf, usePeople } from '../people.js';
import { changePreferences, CHOICES, usePreferences } from '../preferences.js';
import { Avatar, Facts } from '../ui/display.js';
import { toast, toastError, useAction } from '../ui/feedback.js';
import { Card } from '../ui/page.js';
import { Validity } from '../ui/validity.js';
import { DisplayName } from './display_name.js';
import { UserPrivacy } from './privacy.js';
import { ProfileHead } from './profile_head.js';

const PREVIEW = 192; // pixels

/** Shows a chosen picture as the server will crop it: its square centre. */
function Preview({ file }) {
  const canvas = useRef();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    let gone = false;
    createImageBitmap(file).then((picture) => {
      if (gone) return;
      const side = Math.min(picture.width, picture.height);
      const [left, top] = [(picture.width - side) / 2, (picture.height - side) / 2];
      canvas.current.getContext('2d').drawImage(picture, left, top, side, side, 0, 0, PREVIEW, PREVIEW);
    }, () => setBroken(true));
    return () => (gone = true);
  }, [file]);
  if (broken) return html`<p class="field-error">${t('profile.not_a_picture')}</p>`;
  return html`<canvas ref=${canvas} class="avatar l" width=${PREVIEW} height=${PREVIEW} role="img" aria-label=${t('profile.preview')} />`;
}

function Picture() {
  usePeople();
  const input = useRef();
  const [file, setFile] = useState(null);
  const load = useLoad(() => api.get('/v1/profile'));
  const url = load.data?.avatar?.url;
  const show = (avatar) => {
    load.setData((was) => ({ ...was, avatar }));
    avatarUrl.set(avatar?.thumbnail_url ?? null);
    setFile(null);
    toast(t('saved'));
  };
  const save = useAction(async () => {
    const form = new FormData();
    form.append('file', file);
    show(await api.upload('/v1/profile/avatar', form));
  });
  const remove = useAction(async () => {
    await api.delete('/v1/profile/avatar');
    show(null);
  });
  function onChange(event) {
    setFile(event.target.files[0] ?? null);
    event.target.value = ''; // so that the same file can be chosen again
  }
  const buttons = file
    ? html`<button disabled=${save.busy} onClick=${save.run}>${t('profile.use')}</button>
        <button class="quiet" onClick=${() => setFile(null)}>${t('do.cancel')}</button>`
    : html`<button class="quiet" onClick=${() => input.current.click()}>${t('profile.choose')}</button>
        ${url && html`<button class="quiet" disabled=${remove.busy} onClick=${remove.run}>${t('profile.remove')}</button>`}`;
  return html`<${Card} title=${t('profile.picture')}>
    <div class="with-avatar picture">
      ${file
        ? html`<${Preview} key=${file.name} file=${file} />`
        : html`<${Avatar} name=${nameOf(myId())} url=${url} size="l" />`}
      <div class="stack"><p class="fine">${t('profile.picture_hint')}</p><div class="row">${buttons}</div></div>
      <input ref=${input} class="sr" type="file" tabindex="-1" accept="image/png,image/jpeg" aria-label=${t('profile.choose')}
        onChange=${onChange} />
    </div>
  <//>`;
}

/** A choice among few values, as a row of radio buttons. */
function Choice({ name, legend, value, values, textOf, lang, choose }) {
  return html`<fieldset class="choice"><legend>${legend}</legend><div class="segments">
    ${values.map((one) => html`<label key=${one}>
      <input type="radio" name=${name} value=${one} checked=${one === value} onChange=${() => choose(one)} />
      <span lang=${lang && one}>${textOf(one)}</span>
    </label>`)}
  </div></fieldset>`;
}

const PREFERENCE_TEXT = {
  theme: (value) => term('theme', value),
  date_format: (value) => value.replace('DD', '31').replace('MM', '01').replace('YYYY', '2026'),
  number_format: (value) => value,
  currency_display: (value) => term('currency_display', value),
};

function Preferences() {
  const preferences = usePreferences();
  const change = (name) => (value) => changePreferences({ [name]: value }).then(() => toast(t('saved')), toastError);
  const sample = [dateTime(new Date().toISOString()), number(1234567), money(1234.5, 'CHF'), money(98.7, 'EUR')];
  return html`<${Card} title=${t('profile.preferences')}>
    <${Choice} name="language" legend=${t('language')} value=${language.get()} values=${Object.keys(LANGUAGES)} lang
      textOf=${(tag) => LANGUAGES[tag]} choose=${(tag) => chooseLanguage(tag).catch(toastError)} />
    ${Object.entries(PREFERENCE_TEXT).map(([name, textOf]) => html`<${Choice} key=${name} name=${name} legend=${t(`prefs.${name}`)}
      value=${preferences[name]} values=${CHOICES[name]} textOf=${textOf} choose=${change(name)} />`)}
    <p class="fine sample">${t('prefs.sample')} <span class="num">${sample.join(' · ')}</span></p>
  <//>`;
}

/** The caller's roles, each with its beginning and end if it has any. Roles that begin later are among them. */
function OwnRoles({ me }) {
  const terms = new Map(me.role_terms?.map((term) => [term.role, term]));
  const all = [...new Set([...me.roles, ...terms.keys()])];
  if (terms.size === 0) return all.map(roleName).join(', ');
  return html`<ul class="items">${all.map((role) => html`<li key=${role}><span>${roleName(role)}</span>
    <${Validity} term=${terms.get(role)} /></li>`)}</ul>`;
}

/** The caller's profile: name, picture, account and preferences. */
export default function Profile() {
  const { me } = useCaller();
  const facts = [
    [t('field.state'), term('user_status', me.status)],
    [t('field.roles'), html`<${OwnRoles} me=${me} />`],
    [t('field.last_login_at'), dateTime(me.last_login_at)],
    [t('field.id'), html`<span class="code">${me.id}</span>`],
  ];
  return html`
    <${ProfileHead} current="/profile" />
    <div class="grid-2">
      <div class="stack">
        <${DisplayName} user=${me} /><${Picture} />
        <${Card} title=${t('profile.account')}><${Facts} list rows=${facts} /><//>
        <${UserPrivacy} userId=${me.id} />
      </div>
      <${Preferences} />
    </div>`;
}
