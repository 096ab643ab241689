import { html } from '../lib.js';
import { t } from '../i18n.js';
import { isService, isStaff, nameOf, signInNameOf, usePeople } from '../people.js';

/**
 * A user's name, isolated from the text around it because users choose it themselves, with a mark for the bank's staff and
 * for service accounts.
 * @param {{id: string, signIn?: boolean}} props signIn: also show the sign-in name, where the reader decides by who it is
 */
export function Person({ id, signIn }) {
  usePeople();
  const name = nameOf(id);
  const login = signIn && signInNameOf(id);
  const mark = (isService(id) && t('people.service')) || (isStaff(id) && t('people.staff'));
  return html`<span class="person"><bdi class="person-name" title=${name}>${name}</bdi>${
    mark && html` <span class="staff">${mark}</span>`}${
    login && login !== name && html` <bdi class="sign-in-name">${login}</bdi>`}</span>`;
}

/** Several users' names, separated by commas. */
export const People = ({ ids }) => ids.map((id, i) => html`${i > 0 && ', '}<${Person} key=${id} id=${id} />`);

/** A user as plain text, for labels and questions: the name and, where it differs, the sign-in name in parentheses. */
export function personText(id) {
  const [name, login] = [nameOf(id), signInNameOf(id)];
  return login && login !== name ? `${isolated(name)} (${isolated(login)})` : isolated(name);
}

/** Text between the Unicode marks that do in plain text what <bdi> does in a page. */
const isolated = (text) => `\u2068${text}\u2069`;
