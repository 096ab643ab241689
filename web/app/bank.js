import { caller, isClient } from './access.js';

// The settings of the bank, which the server puts into the page: {name, color, logo, terms, privacy}.
const bank = JSON.parse(document.getElementById('bank')?.textContent ?? '{}');

/** The address of the bank's terms of use, if it has set one. */
export const TERMS = bank.terms;

/** The address of the bank's privacy policy, if it has set one. */
export const PRIVACY = bank.privacy;

/** The name that customers see. */
export const BANK_NAME = bank.name ?? 'Kontor';

/** The name for the caller: staff see that of the software. */
export const siteName = () => (caller.get() && !isClient() ? 'Kontor' : BANK_NAME);

/** The address of the bank's logo, if it has one. */
export const LOGO = bank.logo && new URL(`../${bank.logo}`, import.meta.url).href;
