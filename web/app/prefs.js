import { store, useStore } from './store.js';
import { api } from './api.js';

const KEY = 'kontor.theme';

/** The display preferences in force; the values before sign-in are the Swiss defaults. */
export const prefs = store({ theme: localStorage.getItem(KEY) ?? 'system', date_format: 'DD.MM.YYYY', currency_display: 'code', number_format: "1'234.56" });

/** The values the server accepts, in the order they are offered. */
export const CHOICES = {
  theme: ['light', 'dark', 'system'],
  date_format: ['DD.MM.YYYY', 'YYYY-MM-DD', 'DD/MM/YYYY', 'MM/DD/YYYY'],
  number_format: ["1'234.56", '1,234.56', '1.234,56', '1 234,56'],
  currency_display: ['code', 'symbol', 'name'],
};

function applyTheme({ theme }) {
  localStorage.setItem(KEY, theme);
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

prefs.watch(applyTheme);

/** Takes over what the server keeps for the signed-in user. */
export async function loadPrefs() {
  const kept = await api.get('/v1/profile/preferences');
  prefs.set((was) => ({ ...was, ...kept }));
}

/** Applies a change at once and keeps it on the server; when that fails, the former value comes back. */
export async function changePrefs(change) {
  const before = prefs.get();
  const next = { ...before, ...change };
  prefs.set(next);
  try {
    await api.put('/v1/profile/preferences', next);
  } catch (error) {
    prefs.set(before);
    throw error;
  }
}

/** Draws the component again when a preference changes. */
export const usePrefs = () => useStore(prefs);
