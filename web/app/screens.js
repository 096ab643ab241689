import { may, mayAny } from './access.js';

// The screens are listed once, in web/screens.json; the page carries the list. A row has
//   path     with :names; a name with ? may be missing
//   module   the file below screens/, fetched when the screen is first shown
//   menu     the menu group it appears in, with its icon, title and (optional) count of unread
//   needs    {any: type}: any permission on the type; {administer: type}: reading all or updating; nothing: everybody
//   section  the menu entry that is current while the screen is shown, where it is not the path's own
//   public   shown before sign-in
const rows = JSON.parse(document.getElementById('screens').textContent);

const met = ({ any, administer } = {}) => (!any || mayAny(any)) && (!administer || may(administer, 'read_all') || may(administer, 'update'));

const withLoader = (row) => ({ ...row, load: () => import(`./screens/${row.module}.js`) });

/** The screens of a signed-in user, in the order of the menu. */
export const SCREENS = rows.filter((row) => !row.public).map(withLoader);

/** The screens before sign-in. */
export const PUBLIC_SCREENS = rows.filter((row) => row.public).map(withLoader);

/** The screen of an address that no row fits. */
export const MISSING = withLoader({ path: 'missing', module: 'missing' });

/** The entries of a menu group that the caller has use for. */
export const menu = (group) => SCREENS.filter((row) => row.menu === group && met(row.needs));
