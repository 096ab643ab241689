import { store, useStore } from './store.js';
import { api } from './api.js';
import { oneByOne } from './in_order.js';

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

let changed = {}; // since the last load began, whose answer may be older

/** Loads the preferences of the signed-in user. */
export async function loadPreferences() {
  changed = {};
  const saved = await api.get('/v1/profile/preferences');
  preferences.set((was) => ({ ...was, ...saved, ...changed }));
}

const save = oneByOne();

/** Applies a change at once and saves it on the server; when saving fails, the change is reverted. Other preferences stay. */
export async function changePreferences(change) {
  const names = Object.keys(change);
  const before = preferences.get();
  Object.assign(changed, change);
  preferences.set({ ...before, ...change });
  try {
    await save(() => api.put('/v1/profile/preferences', change));
  } catch (error) {
    const own = names.filter((name) => preferences.get()[name] === change[name]); // not changed again meanwhile
    const former = Object.fromEntries(own.map((name) => [name, before[name]]));
    Object.assign(changed, former);
    preferences.set((was) => ({ ...was, ...former }));
    throw error;
  }
}

/** Renders the component again when a preference changes. */
export const usePreferences = () => useStore(preferences);
