import { store, useStore } from './store.js';

/** The languages of the console, each by its own name. */
export const LANGUAGES = { de: 'Deutsch', fr: 'Français', it: 'Italiano', en: 'English' };

const KEY = 'kontor.language';
const tables = {}; // the texts by language and key
const files = new Map(); // address → the load of a file of texts; a failed one is deleted
const parts = new Set(['']); // the parts of the texts in use; '' holds the texts of the first screens

/** The current language; it changes only after its texts are loaded. */
export const language = store('en');

/** The first language: the one chosen earlier, else the browser's, else English. */
export function initialLanguage() {
  const preferred = [localStorage.getItem(KEY), ...navigator.languages].filter(Boolean).map((tag) => tag.slice(0, 2).toLowerCase());
  return preferred.find((tag) => LANGUAGES[tag]) ?? 'en';
}

/** Loads a part of the texts of a language once. */
function load(tag, part) {
  const address = `../i18n/${part && `${part}/`}${tag}.json`;
  if (!files.has(address)) {
    const fail = (error) => {
      files.delete(address);
      throw error;
    };
    files.set(address, read(tag, address).catch(fail));
  }
  return files.get(address);
}

async function read(tag, address) {
  const response = await fetch(new URL(address, import.meta.url));
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  const texts = await response.json();
  tables[tag] = { ...tables[tag], ...texts }; // Only now: another part may have arrived meanwhile.
}

let switches = 0;

/**
 * Loads the texts of a language and switches to it, unless another switch begins meanwhile.
 * @param {string} tag one of LANGUAGES
 */
export async function switchLanguage(tag) {
  if (!LANGUAGES[tag]) return;
  const mine = ++switches;
  for (const part of parts) await load(tag, part); // Parts that are added meanwhile are loaded too.
  if (mine !== switches) return;
  localStorage.setItem(KEY, tag);
  document.documentElement.lang = tag;
  language.set(tag);
}

/**
 * Loads a part of the texts that the first screens do not need, from the folder of its name.
 * @param {string} part
 */
export async function loadTexts(part) {
  parts.add(part);
  await load(language.get(), part);
}

/**
 * Returns the text of a key with its {placeholders} filled. A number `n` selects the plural form.
 * @param {string} key
 * @param {Record<string, any>} [values]
 */
export function t(key, values = {}) {
  const table = tables[language.get()] ?? {};
  const plural = 'n' in values ? `${key}.${new Intl.PluralRules(language.get()).select(values.n)}` : key;
  const text = table[plural] ?? table[`${key}.other`] ?? table[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The text for a value of the API, such as a status; a value without a text is shown as it is. */
export function term(group, value) {
  if (!value) return '';
  const key = `${group}.${value}`;
  const text = (tables[language.get()] ?? {})[key];
  return text ?? String(value).replaceAll('_', ' ');
}

/** Renders the component again when the language changes. */
export const useLanguage = () => useStore(language);
