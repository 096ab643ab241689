import { isClient, may, mayAny } from './access.js';
import { match } from './router.js';

// The screens are listed once, in web/screens.json; the server puts the list into the page. A row has
//   path     with :names; a name with ? is optional
//   module   the file below screens/, loaded when the screen is first shown
//   menu     the menu group it appears in, with its icon, title and (optional) unread count
//   needs    {any: type}: any permission on the type; {administer: type}: read_all or update; absent: no permission
//   section  the menu entry that is current while the screen is shown, when it is not the path itself
//   beside   the list that stays on the left of a record in a wide window
//   texts    the parts of the texts that the screen needs besides those of the first screens
//   public   shown before sign-in
//   client   {module, title, texts}: what replaces them for a customer of the bank, who has screens of their own
//   only     'staff' or 'client': whose menu has the entry
const rows = JSON.parse(document.getElementById('screens').textContent);

const hasAccess = ({ any, administer } = {}) => (!any || mayAny(any))
  && (!administer || may(administer, 'read_all') || may(administer, 'update'));

/** The screens of a signed-in user, in the order of the menu. */
export const SCREENS = rows.filter((row) => !row.public);

/** The screens before sign-in. */
export const PUBLIC_SCREENS = rows.filter((row) => row.public);

/** The screen for an address that no row matches. */
export const NOT_FOUND = { path: 'not_found', module: 'not_found' };

/** The address of a menu entry: the path of its row without parameters. */
export const menuPath = (row) => row.path.replace(/\/:.*/, '') || '/';

/** The key of the title of a screen: its own, or that of the menu entry that it belongs to. */
export const titleOf = (row) => row.title
  ?? SCREENS.find((one) => one.title && one.path !== '/' && (row.section ?? row.path).startsWith(menuPath(one)))?.title
  ?? (row.public ? 'signin.title' : 'not_found.title');

/** A row as it is for the caller. */
export const ownRow = (row) => (row.client && isClient() ? { ...row, ...row.client } : row);

const isFor = ({ only }) => !only || (only === 'client') === isClient();

/** The row of the list that a record is shown beside, if the caller may use it. */
export function listBeside({ row, params }) {
  const list = row.beside && params.id && match(SCREENS, row.beside)?.row;
  return list && isFor(list) && hasAccess(list.needs) ? ownRow(list) : null;
}

/** The entries of a menu group that the caller may use. */
export const menu = (group) => SCREENS.filter((row) => row.menu === group && isFor(row) && hasAccess(row.needs)).map(ownRow);
