import { useAddress } from './address.js';
import { route } from './router.js';
import { store, useStore } from './store.js';

const KEY = 'kontor.lists';
const MAX_LIMIT = 100; // the server's

/** The numbers of rows of a page that a user may choose. */
export const SIZES = [20, 50, 100];

const read = () => {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
};

const settings = store(read()); // path of the screen → {limit, columns}

function change(screen, what) {
  settings.set((was) => ({ ...was, [screen]: { ...was[screen], ...what } }));
  localStorage.setItem(KEY, JSON.stringify(settings.get()));
}

/**
 * The number of rows and the columns of a list. Those in the address, which a shared link or a saved view contains, go before
 * those that the user chose in this browser.
 * @param {string} screen path of the screen
 * @param {number} usual the number of rows until the user chooses another
 * @returns {{limit: number, columns: string[]|null, setLimit: (limit: number) => void, setColumns: (keys: string[]|null) => void}}
 *   columns: keys in the order of the table; null: all
 */
export function useListSettings(screen, usual) {
  const { query, set } = useAddress();
  const kept = useStore(settings)[screen] ?? {};
  const asked = Number(query.get('limit'));
  const columns = query.get('columns')?.split(',') ?? kept.columns ?? null;
  return {
    limit: asked >= 1 && asked <= MAX_LIMIT ? Math.floor(asked) : kept.limit ?? usual,
    columns: columns?.length ? columns : null,
    setLimit(limit) {
      change(screen, { limit });
      set({ limit: '', offset: '' });
    },
    setColumns(keys) {
      change(screen, { columns: keys });
      set({ columns: '' });
    },
  };
}

/** The address of a list as it is shown, with its columns and rows of a page, without the page: for a link or a saved view. */
export function viewQuery(list) {
  const query = new URLSearchParams(route.get().query);
  for (const name of ['offset', 'new']) query.delete(name);
  query.set('limit', list.limit);
  if (list.columns) query.set('columns', list.columns.join(','));
  return String(query);
}
