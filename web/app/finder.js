// The commands and screens that the finder offers besides records, and the answer of a search as it shows it.
import { may } from './access.js';
import { chooseLanguage, signOut } from './auth.js';
import { conversations } from './conversations.js';
import { matches, words } from './highlight.js';
import { LANGUAGES, language, t, term } from './i18n.js';
import { changePreferences, CHOICES, preferences } from './preferences.js';
import { go } from './router.js';
import { menu, menuPath } from './screens.js';
import { plainChatName } from './ui/chat_name.js';

const SHOWN = 5; // chats by their participants

/** Types of records that can be created, with the screens whose parameter `new` opens the form. */
const CREATED = ['customers', 'personas', 'payers', 'tasks', 'chats'];

function commands() {
  return [
    ...CREATED.filter((type) => may(type, 'create')).map((type) => ({
      id: `new-${type}`, name: t(`${type}.new`), icon: 'plus', path: `/${type}?new=1`,
    })),
    ...CHOICES.theme.filter((theme) => theme !== preferences.get().theme).map((theme) => ({
      id: `theme-${theme}`, name: t('finder.theme', { theme: term('theme', theme) }), icon: 'sun', run: () => changePreferences({ theme }),
    })),
    ...Object.entries(LANGUAGES).filter(([tag]) => tag !== language.get()).map(([tag, name]) => ({
      id: `language-${tag}`, name: t('finder.language', { language: name }), icon: 'refresh', run: () => chooseLanguage(tag),
    })),
    { id: 'signout', name: t('nav.signout'), icon: 'logout', run: signOut },
  ];
}

const screens = () => ['main', 'admin', 'developers'].flatMap(menu).map((row) => ({
  id: menuPath(row), path: menuPath(row), name: t(row.title), icon: row.icon,
}));

/** The loaded chats by their participants; the server finds chats by titles and messages. */
const chats = () => (conversations.get()?.chats ?? [])
  .map((chat) => ({ id: chat.id, path: `/chats/${chat.id}`, name: plainChatName(chat), icon: 'chats' }));

/**
 * The groups that need no request. Without a text these are the screens.
 * @param {string} text
 */
export function localGroups(text) {
  const searched = words(text);
  if (!searched.length) return text ? [] : [{ title: t('finder.screens'), rows: screens() }];
  const fitting = (rows) => rows.filter((row) => matches(row.name, searched));
  return [
    { title: t('finder.commands'), rows: fitting(commands()) },
    { title: t('finder.screens'), rows: fitting(screens()) },
    { title: t('nav.chats'), type: 'chats', rows: fitting(chats()).slice(0, SHOWN) },
  ].filter((group) => group.rows.length);
}

const PATHS = {
  customers: (row) => `/customers/${row.id}`,
  personas: (row) => `/personas/${row.id}`,
  payers: (row) => `/payers/${row.id}`,
  users: (row) => `/admin/users/${row.id}`,
  tasks: (row) => `/customers/${row.customer_id}/tasks/${row.id}`,
  chats: (row) => `/chats/${row.id}`,
};

const SUBTITLES = { users: (row) => term('user_status', row.subtitle), tasks: (row) => term('task_status', row.subtitle) };

/** The title of a chat: that of its creator, or the names of its participants if the chat is loaded. */
function chatTitle(row) {
  const chat = conversations.get()?.chats?.find((one) => one.id === row.id);
  return row.title || (chat ? plainChatName(chat) : t('finder.unnamed'));
}

/** The groups of an answer of GET /v1/search. */
export const foundGroups = ({ groups }) => groups.map(({ type, rows }) => ({
  title: t(`nav.${type}`), type,
  rows: rows.map((row) => ({
    id: row.id, path: PATHS[type](row), icon: type, name: type === 'chats' ? chatTitle(row) : row.title || row.id,
    note: row.line ?? (row.subtitle && (SUBTITLES[type]?.(row) ?? row.subtitle)),
  })),
}));

/** Joins the local groups with those of the server: a chat is shown once. */
export function joined(local, found) {
  const known = new Set(found.flatMap((group) => group.rows.map((row) => row.path)));
  const rest = local.map((group) => (group.type ? { ...group, rows: group.rows.filter((row) => !known.has(row.path)) } : group));
  const own = rest.filter((group) => !group.type && group.rows.length);
  const more = rest.filter((group) => group.type && group.rows.length);
  return [...own, ...found, ...more];
}

/** Opens a row, or runs its command. */
export const open = (row) => (row.path ? go(row.path) : row.run());
