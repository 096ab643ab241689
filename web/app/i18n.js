import { store, useStore } from './store.js';

/** The languages of the console, each by its own name. */
export const LANGUAGES = { de: 'Deutsch', fr: 'Français', it: 'Italiano', en: 'English' };

const KEY = 'kontor.language';
const tables = {};

/** The language in force; it changes only after its texts are there. */
export const language = store('en');

/** The language to begin with: the one chosen earlier, else the browser's, else English. */
export function initialLanguage() {
  const wished = [localStorage.getItem(KEY), ...navigator.languages].filter(Boolean).map((tag) => tag.slice(0, 2).toLowerCase());
  return wished.find((tag) => LANGUAGES[tag]) ?? 'en';
}

/**
 * Loads the texts of a language and switches to it.
 * @param {string} tag one of LANGUAGES
 */
export async function useLanguageTexts(tag) {
  if (!LANGUAGES[tag]) return;
  if (!tables[tag]) {
    const answer = await fetch(new URL(`../i18n/${tag}.json`, import.meta.url));
    if (!answer.ok) throw new Error(`texts of ${tag}: ${answer.status}`);
    tables[tag] = await answer.json();
  }
  localStorage.setItem(KEY, tag);
  document.documentElement.lang = tag;
  language.set(tag);
}

/**
 * The text of a key with its {placeholders} filled. With a number `n`, the key's plural form is taken.
 * @param {string} key
 * @param {Record<string, any>} [values]
 */
export function t(key, values = {}) {
  const table = tables[language.get()] ?? {};
  const plural = 'n' in values ? `${key}.${new Intl.PluralRules(language.get()).select(values.n)}` : key;
  const text = table[plural] ?? table[`${key}.other`] ?? table[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The text of a key that the server's data completes, or the fallback when the console does not know the value. */
export function term(group, value) {
  if (!value) return '';
  const key = `${group}.${value}`;
  const text = (tables[language.get()] ?? {})[key];
  return text ?? String(value).replaceAll('_', ' ');
}

/** Draws the component again when the language changes. */
export const useLanguage = () => useStore(language);
