import { isClient, may, mayAny, mayCall } from './access.js';
import { match } from './router.js';
import { rows } from './screen_rows.js';

const mayOpen = ({ call }) => !call || mayCall(call);

const hasAccess = ({ needs: { any, update, administer } = {}, ...row }) => mayOpen(row) && (!any || mayAny(any))
  && (!update || may(update, 'update')) && (!administer || may(administer, 'read_all') || may(administer, 'update'));

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
export function ownRow(row) {
  if (!mayOpen(row)) return { ...row, module: 'no_access', texts: [] };
  return row.client && isClient() ? { ...row, ...row.client } : row;
}

const isFor = ({ only }) => !only || (only === 'client') === isClient();

/** The row of the list that a record is shown beside, if the caller may use it. */
export function listBeside({ row, params }) {
  const list = row.beside && params.id && match(SCREENS, row.beside)?.row;
  return list && isFor(list) && hasAccess(list) ? ownRow(list) : null;
}

/** The entries of a menu group that the caller may use. */
export const menu = (group) => SCREENS.filter((row) => row.menu === group && isFor(row) && hasAccess(row)).map(ownRow);
