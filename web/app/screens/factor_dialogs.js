import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { offerFile } from '../download.js';
import { t } from '../i18n.js';
import { createPasskey, supportsPasskeys } from '../passkeys.js';
import { nameOf } from '../people.js';
import { deviceName } from '../session.js';
import { Copy } from '../ui/display.js';
import { Dialog } from '../ui/dialog.js';
import { Notice, toastError, useAction } from '../ui/feedback.js';
import { Actions, CodeField, codeDigits, Field, Form, useForm } from '../ui/form.js';
import { Icon } from '../ui/icon.js';
import { QrCode } from './qr_code.js';

/** The form of a factor's name. */
const NameField = ({ form }) => html`<${Field} form=${form} name="name" label=${t('field.name')} hint=${t('factors.name_hint')}
  maxlength="100" autocomplete="off" />`;

/** Makes a secret readable: groups of four characters. */
const grouped = (secret) => secret.replace(/(.{4})(?=.)/g, '$1 ');

function TotpDialog({ path, factor, close, done }) {
  const form = useForm({ code: '' }, async ({ code }) => done(await api.post(`${path}/${factor.id}/confirm`, { code: codeDigits(code) })));
  const { secret, uri, qr_svg: picture } = factor.totp;
  return html`<${Dialog} title=${t('factors.add_totp')} close=${close}>
    <p>${t('factors.totp_scan')}</p>
    <${QrCode} svg=${picture} label=${t('factors.totp_picture')} />
    <div><p class="fine">${t('factors.totp_secret')}</p>
      <p class="secret"><span class="code">${grouped(secret)}</span><${Copy} text=${secret} label=${t('factors.copy_secret')} /></p>
      <p class="fine"><a href=${uri}>${t('factors.totp_open')}</a></p></div>
    <${Form} form=${form}>
      <${CodeField} class="otp" form=${form} name="code" hint=${t('factors.totp_code')} />
      <${Actions} form=${form} label=${t('otp.do')} cancel=${close} />
    <//>
  <//>`;
}

function PasskeyDialog({ path, close, done }) {
  const device = deviceName().replace(/ \(\w+\)$/, '');
  const form = useForm({ name: device }, async ({ name }) => {
    const factor = await api.post(path, { type: 'passkey', name: name.trim() });
    const { options, token } = factor.passkey;
    done(await api.post(`${path}/${factor.id}/confirm`, { passkey: await createPasskey(options), token }));
  });
  return html`<${Dialog} title=${t('factors.add_passkey')} close=${close}>
    <p>${t('factors.passkey_text')}</p>
    <${Form} form=${form}>
      <${NameField} form=${form} />
      <${Actions} form=${form} label=${t('factors.passkey_do')} cancel=${close} />
    <//>
  <//>`;
}

/** Changes the name of a factor. */
export function RenameDialog({ path, factor, close, done }) {
  const form = useForm({ name: factor.name }, async ({ name }) => done(await api.patch(`${path}/${factor.id}`, { name: name.trim() })));
  return html`<${Dialog} title=${t('factors.rename')} close=${close}><${Form} form=${form}>
    <${NameField} form=${form} /><${Actions} form=${form} label=${t('do.save')} cancel=${close} />
  <//><//>`;
}

/** Shows new recovery codes. The server returns them only once. */
export function CodesDialog({ userId, codes, close }) {
  const heading = t('codes.heading', { bank: location.host, name: nameOf(userId) });
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(codes.join('\n')).then(() => setCopied(true), toastError);
  const text = [heading, '', ...codes, '', t('codes.each_once'), ''].join('\n');
  return html`<${Dialog} title=${t('codes.title')}>
    <${Notice} tone="warn">${t('codes.once')}<//>
    <div class="codes"><p class="fine">${heading}</p>
      <ol>${codes.map((code) => html`<li key=${code} class="code">${code}</li>`)}</ol></div>
    <div class="row">
      <button type="button" class="quiet small" onClick=${copy}>${t(copied ? 'copied' : 'codes.copy')}</button>
      <button type="button" class="quiet small" onClick=${() => offerFile('kontor-recovery-codes.txt', text)}>
        ${t('codes.download')}
      </button>
      <button type="button" class="quiet small" onClick=${() => window.print()}>${t('codes.print')}</button>
    </div>
    <p class="fine">${t('codes.text')}</p>
    <div class="actions"><button type="button" onClick=${close}>${t('codes.kept')}</button></div>
  <//>`;
}

const MOST = { passkey: 10, totp: 1 }; // factors of a type that a user may have; the server's limits

/**
 * Buttons that add a passkey or an authenticator app, with their dialogs. A user's first factor comes with recovery codes.
 * @param {{userId: string, present?: {type: string}[], done: () => void}} props
 *   present: the factors that the user has; done: called once the factor is active and the user has kept the codes
 */
export function AddFactor({ userId, present = [], done }) {
  const path = `/v1/users/${userId}/factors`;
  const [dialog, setDialog] = useState(null); // 'passkey', a pending authenticator app, or recovery codes
  const totp = useAction(async () => setDialog(await api.post(path, { type: 'totp', name: t('factors.totp') })));
  const close = () => setDialog(null);
  function finish() {
    close();
    done();
  }
  const added = (factor) => (factor.recovery_codes ? setDialog({ codes: factor.recovery_codes }) : finish());
  const fits = (type) => present.filter((one) => one.type === type).length < MOST[type];
  return html`<div class="row">
      ${supportsPasskeys() && fits('passkey') && html`<button type="button" class="quiet small" onClick=${() => setDialog('passkey')}>
        <${Icon} name="key" size=${14} />${t('factors.add_passkey')}
      </button>`}
      ${fits('totp') && html`<button type="button" class="quiet small" disabled=${totp.busy} onClick=${totp.run}>
        <${Icon} name="device" size=${14} />${t('factors.add_totp')}
      </button>`}
    </div>
    ${dialog === 'passkey' && html`<${PasskeyDialog} key="passkey" path=${path} close=${close} done=${added} />`}
    ${dialog?.totp && html`<${TotpDialog} key="totp" path=${path} factor=${dialog} close=${close} done=${added} />`}
    ${dialog?.codes && html`<${CodesDialog} key="codes" userId=${userId} codes=${dialog.codes} close=${finish} />`}`;
}
