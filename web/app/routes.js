import { may, mayAny } from './access.js';

// Every screen of the console. A screen is fetched when it is first shown. `nav` puts it into the menu under that
// group; `shown` says whether the caller has any use for it.
const reads = (type) => () => mayAny(type);
const administers = (type) => () => may(type, 'read_all') || may(type, 'update');

/** The screens, in the order of the menu. */
export const ROUTES = [
  { path: '/', load: () => import('./screens/overview.js'), nav: 'main', icon: 'overview', title: 'nav.overview' },
  { path: '/customers', load: () => import('./screens/customers.js'), nav: 'main', icon: 'customers', title: 'nav.customers', shown: reads('customers') },
  { path: '/personas', load: () => import('./screens/personas.js'), nav: 'main', icon: 'personas', title: 'nav.personas', shown: reads('personas') },
  { path: '/personas/:id', load: () => import('./screens/persona.js') },
  { path: '/payers', load: () => import('./screens/payers.js'), nav: 'main', icon: 'payers', title: 'nav.payers', shown: reads('payers') },
  { path: '/payers/:id', load: () => import('./screens/payers.js') },
  { path: '/tasks', load: () => import('./screens/tasks.js'), nav: 'main', icon: 'tasks', title: 'nav.tasks' },
  { path: '/customers/:customer/tasks/:id', section: '/tasks', load: () => import('./screens/task.js') },
  { path: '/tasks/:customer/:id', load: () => import('./screens/task.js') },
  { path: '/customers/:id/:tab?', load: () => import('./screens/customer.js') },
  { path: '/chats/:id?', load: () => import('./screens/chats.js'), nav: 'main', icon: 'chats', title: 'nav.chats', count: 'chats' },
  { path: '/notifications/:id?', load: () => import('./screens/notifications.js'), nav: 'main', icon: 'bell', title: 'nav.notifications', count: 'notifications' },
  { path: '/invoices', load: () => import('./screens/invoices.js'), nav: 'main', icon: 'invoices', title: 'nav.invoices' },
  { path: '/profile', load: () => import('./screens/profile.js') },
  { path: '/admin/users', load: () => import('./screens/admin/users.js'), nav: 'admin', icon: 'users', title: 'nav.users', shown: administers('users') },
  { path: '/admin/users/:id', load: () => import('./screens/admin/user.js') },
  { path: '/admin/roles', load: () => import('./screens/admin/roles.js'), nav: 'admin', icon: 'roles', title: 'nav.roles', shown: administers('roles') },
  { path: '/admin/roles/:id', load: () => import('./screens/admin/role.js') },
  { path: '/admin/endpoints', load: () => import('./screens/admin/endpoints.js'), nav: 'admin', icon: 'endpoints', title: 'nav.endpoints', shown: administers('roles') },
  { path: '/admin/limits', load: () => import('./screens/admin/limits.js'), nav: 'admin', icon: 'limits', title: 'nav.limits', shown: administers('rate_limits') },
  { path: '/admin/keys', load: () => import('./screens/admin/keys.js'), nav: 'admin', icon: 'key', title: 'nav.keys', shown: administers('api_keys') },
  { path: '/admin/deliveries', load: () => import('./screens/admin/deliveries.js'), nav: 'admin', icon: 'deliveries', title: 'nav.deliveries', shown: administers('deliveries') },
  { path: '/admin/audit', load: () => import('./screens/admin/audit.js'), nav: 'admin', icon: 'audit', title: 'nav.audit', shown: administers('audit') },
  { path: '/admin/health', load: () => import('./screens/admin/health.js'), nav: 'admin', icon: 'health', title: 'nav.health', shown: administers('roles') },
];

/** The screens before sign-in. */
export const DOORS = [
  { path: '/signin', load: () => import('./screens/signin.js') },
  { path: '/register', load: () => import('./screens/register.js') },
  { path: '/recover', load: () => import('./screens/recover.js') },
];

/** The entries of a menu group that the caller has use for. */
export const menu = (group) => ROUTES.filter((row) => row.nav === group && (!row.shown || row.shown()));

