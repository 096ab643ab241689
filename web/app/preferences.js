import { store, useStore } from './store.js';
import { api } from './api.js';

const KEY = 'kontor.theme';

/** The current display preferences; before sign-in they are the Swiss defaults. */
export const preferences = store({
  theme: localStorage.getItem(KEY) ?? 'system',
  date_format: 'DD.MM.YYYY',
  currency_display: 'code',
  number_format: "1'234.56",
});

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

preferences.watch(applyTheme);

/** Loads the preferences of the signed-in user. */
export async function loadPreferences() {
  const saved = await api.get('/v1/profile/preferences');
  preferences.set((was) => ({ ...was, ...saved }));
}

/** Applies a change at once and saves it on the server; when saving fails, the change is reverted. */
export async function changePreferences(change) {
  const before = preferences.get();
  const next = { ...before, ...change };
  preferences.set(next);
  try {
    await api.put('/v1/profile/preferences', next);
  } catch (error) {
    preferences.set(before);
    throw error;
  }
}

/** Renders the component again when a preference changes. */
export const usePreferences = () => useStore(preferences);
