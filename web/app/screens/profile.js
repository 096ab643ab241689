import { html, useEffect, useRef, useState } from '../lib.js';
import { api } from '../api.js';
import { caller, myId, roleName, useCaller } from '../access.js';
import { chooseLanguage } from '../auth.js';
import { dateTime, money, number } from '../format.js';
import { LANGUAGES, language, t, term } from '../i18n.js';
import { useLoad } from '../load.js';
import { nameOf, picture, usePeople } from '../people.js';
import { changePrefs, CHOICES, usePrefs } from '../prefs.js';
import { Avatar, Facts } from '../ui/data.js';
import { toast, toastError, useAction } from '../ui/feedback.js';
import { Form, PasswordField, useForm } from '../ui/form.js';
import { Card, PageHead } from '../ui/page.js';
import { Credentials } from './credentials.js';
import { Sessions } from './sessions.js';

const PREVIEW = 192;

/** Draws a chosen picture as it will appear: upright, cut to a square. */
function Preview({ file }) {
  const canvas = useRef();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    let gone = false;
    createImageBitmap(file).then((picture) => {
      if (gone) return;
      const side = Math.min(picture.width, picture.height);
      canvas.current.getContext('2d').drawImage(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side, 0, 0, PREVIEW, PREVIEW);
    }, () => setBroken(true));
    return () => (gone = true);
  }, [file]);
  return broken ? html`<p class="field-error">${t('profile.not_a_picture')}</p>` : html`<canvas ref=${canvas} class="avatar l" width=${PREVIEW} height=${PREVIEW} role="img" aria-label=${t('profile.preview')}></canvas>`;
}

function Picture() {
  usePeople();
  const input = useRef();
  const [file, setFile] = useState(null);
  const load = useLoad(() => api.get('/v1/profile'));
  const url = load.data?.avatar?.url;
  const keep = (avatar) => {
    load.setData((was) => ({ ...was, avatar }));
    picture.set(avatar?.thumbnail_url ?? null);
    setFile(null);
    toast(t('saved'));
  };
  const save = useAction(async () => {
    const form = new FormData();
    form.append('file', file);
    keep(await api.upload('/v1/profile/avatar', form));
  });
  const remove = useAction(async () => {
    await api.delete('/v1/profile/avatar');
    keep(null);
  });
  return html`<${Card} title=${t('profile.picture')}>
    <div class="with-avatar picture">${file ? html`<${Preview} key=${file.name} file=${file} />` : html`<${Avatar} name=${nameOf(myId())} url=${url} size="l" />`}
      <div class="stack"><p class="fine">${t('profile.picture_hint')}</p><div class="row">
        ${file
          ? html`<button disabled=${save.busy} onClick=${save.run}>${t('profile.use')}</button><button class="quiet" onClick=${() => setFile(null)}>${t('do.cancel')}</button>`
          : html`<button class="quiet" onClick=${() => input.current.click()}>${t('profile.choose')}</button>${url && html`<button class="quiet" disabled=${remove.busy} onClick=${remove.run}>${t('profile.remove')}</button>`}`}
      </div></div>
      <input ref=${input} class="sr" type="file" tabindex="-1" accept="image/png,image/jpeg" aria-label=${t('profile.choose')} onChange=${(event) => { setFile(event.target.files[0] ?? null); event.target.value = ''; }} />
    </div>
  <//>`;
}

function Choice({ name, value, texts }) {
  const change = (next) => changePrefs({ [name]: next }).then(() => toast(t('saved')), toastError);
  return html`<fieldset class="choice"><legend>${t(`prefs.${name}`)}</legend><div class="segments">
    ${CHOICES[name].map((one) => html`<label key=${one}><input type="radio" name=${name} value=${one} checked=${one === value} onChange=${() => change(one)} /><span>${texts(one)}</span></label>`)}
  </div></fieldset>`;
}

function Preferences() {
  const prefs = usePrefs();
  return html`<${Card} title=${t('profile.preferences')}>
    <fieldset class="choice"><legend>${t('language')}</legend><div class="segments">
      ${Object.entries(LANGUAGES).map(([tag, name]) => html`<label key=${tag}><input type="radio" name="language" value=${tag} checked=${tag === language.get()} onChange=${() => chooseLanguage(tag).catch(toastError)} /><span lang=${tag}>${name}</span></label>`)}
    </div></fieldset>
    <${Choice} name="theme" value=${prefs.theme} texts=${(one) => term('theme', one)} />
    <${Choice} name="date_format" value=${prefs.date_format} texts=${(one) => one.replace('DD', '31').replace('MM', '01').replace('YYYY', '2026')} />
    <${Choice} name="number_format" value=${prefs.number_format} texts=${(one) => one} />
    <${Choice} name="currency_display" value=${prefs.currency_display} texts=${(one) => term('currency_display', one)} />
    <p class="fine sample">${t('prefs.sample')} <span class="num">${dateTime(new Date().toISOString())} · ${number(1234567)} · ${money(1234.5, 'CHF')} · ${money(98.7, 'EUR')}</span></p>
  <//>`;
}

function Password() {
  const form = useForm({ old_password: '', password: '' }, async (body) => {
    await api.put(`/v1/users/${myId()}/password`, body);
    caller.set((was) => ({ ...was, me: { ...was.me, password_printed: false } }));
    form.set('old_password', '');
    form.set('password', '');
    toast(t('password.changed'));
  });
  return html`<${Card} title=${t('password.change')}>
    <${Form} form=${form}>
      <${PasswordField} form=${form} name="old_password" label=${t('password.current')} autocomplete="current-password" />
      <${PasswordField} form=${form} name="password" label=${t('password.new')} autocomplete="new-password" hint=${t('password.rule')} />
      <p class="fine">${t('password.others')}</p>
      <div class="actions"><button type="submit" disabled=${form.busy}>${t('password.change')}</button></div>
    <//>
  <//>`;
}

/** The caller's own things: picture, preferences, password, credentials, devices. */
export default function Profile() {
  const { me } = useCaller();
  return html`
    <${PageHead} title=${t('nav.profile')} />
    <div class="grid-2">
      <div class="stack"><${Picture} /><${Preferences} />
        <${Card} title=${t('profile.account')}><${Facts} list rows=${[[t('field.state'), term('user_status', me.status)], [t('field.roles'), me.roles.map(roleName).join(', ')], [t('field.last_login_at'), dateTime(me.last_login_at)], [t('field.id'), html`<span class="code">${me.id}</span>`]]} /><//>
      </div>
      <div class="stack"><${Credentials} userId=${me.id} /><${Password} /><${Sessions} userId=${me.id} /></div>
    </div>`;
}

