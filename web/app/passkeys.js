// Passkeys (WebAuthn). The server sends and receives JSON with base64url texts, the browser's functions take bytes.
import { ApiError } from './api.js';
import { t } from './i18n.js';

/** Decodes base64url. */
export const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));

/** Encodes bytes as base64url. */
export const textOf = (buffer) => btoa(Array.from(new Uint8Array(buffer), (one) => String.fromCharCode(one)).join(''))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Whether this browser supports passkeys at this address; they need https, or localhost. */
export const supportsPasskeys = () => Boolean(window.PublicKeyCredential && navigator.credentials);

/** Whether the browser can offer passkeys while the user fills in the sign-in form. */
export async function supportsAutofill() {
  return supportsPasskeys() && Boolean(await window.PublicKeyCredential.isConditionalMediationAvailable?.());
}

const decodeIds = (list) => list?.map((one) => ({ ...one, id: bytesOf(one.id) }));

/** Converts the server's options; they may be wrapped in a member publicKey. */
function decodeOptions(options) {
  const { challenge, user, allowCredentials, excludeCredentials, ...rest } = options.publicKey ?? options;
  return {
    ...rest, challenge: bytesOf(challenge),
    ...(user && { user: { ...user, id: bytesOf(user.id) } }),
    ...(allowCredentials && { allowCredentials: decodeIds(allowCredentials) }),
    ...(excludeCredentials && { excludeCredentials: decodeIds(excludeCredentials) }),
  };
}

const MEMBERS = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'];

/** Converts a credential of the browser into the JSON that the server expects. */
export function encodeCredential(credential) {
  const { id, type, rawId, response, authenticatorAttachment } = credential;
  const encoded = Object.fromEntries(MEMBERS.filter((name) => response[name]).map((name) => [name, textOf(response[name])]));
  const transports = response.getTransports?.();
  return {
    id, type, rawId: textOf(rawId), ...(authenticatorAttachment && { authenticatorAttachment }),
    response: { ...encoded, ...(transports && { transports }) },
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

/** The reasons that browsers give, by the name of their error. */
const REASONS = { NotAllowedError: 'cancelled', InvalidStateError: 'exists', SecurityError: 'address' };

/** Converts an error of the browser into one with a message in the user's language. */
function passkeyError(error) {
  if (error.name === 'AbortError') return error;
  const reason = REASONS[error.name] ?? 'failed';
  return new ApiError({ status: 400, code: `passkey.${reason}`, message: t(`passkey.${reason}`), hint: t(`passkey.${reason}_hint`) });
}

async function ask(request) {
  if (!supportsPasskeys()) {
    const [message, hint] = [t('passkey.unsupported'), t('passkey.unsupported_hint')];
    throw new ApiError({ status: 400, code: 'passkey.unsupported', message, hint });
  }
  try {
    return encodeCredential(await request());
  } catch (error) {
    throw passkeyError(error);
  }
}

/** Creates a passkey on this device or on a security key, and returns what the server needs to keep it. */
export const createPasskey = (options) => ask(() => navigator.credentials.create({ publicKey: decodeOptions(options) }));

/**
 * Asks for a passkey and returns its proof.
 * @param {object} options the server's options
 * @param {{mediation?: string, signal?: AbortSignal}} [how] mediation 'conditional' offers passkeys in the form only
 */
export const getPasskey = (options, how) => ask(() => navigator.credentials.get({ ...how, publicKey: decodeOptions(options) }));
