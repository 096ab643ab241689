import { html } from '../lib.js';
import { LOGO } from '../bank.js';

// Our own drawings on a grid of 20 by 20. They have strokes only, so that they take the colour of the text.
const PATHS = {
  overview: 'M3 3h6v8H3zM11 3h6v5h-6zM11 10h6v7h-6zM3 13h6v4H3z',
  customers: 'M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 17c0-3 2-5 5-5s5 2 5 5M13 4a2.7 2.7 0 0 1 0 5.2M14.5 12.3c2 .6 3 2.4 3 4.7',
  personas: 'M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c0-3.300 2.600-5.500 6-5.500s6 2.200 6 5.500',
  payers: 'M2.500 5.500h15v9h-15zM10 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM5 8v4M15 8v4',
  tasks: 'M4 3h12v14H4zM7 8l1.500 1.500L11 7M7 13h6',
  chats: 'M3 4h14v9H9l-4 3.500V13H3z',
  bell: 'M5 14V9a5 5 0 0 1 10 0v5l1.500 1H3.500zM8.500 17.500h3',
  invoices: 'M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 12h2v2h-2zM15.500 15.500H17V17M12 17h1',
  profile: 'M10 10.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM5 16c.8-2 2.600-3 5-3s4.200 1 5 3',
  users: 'M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c0-3.300 2.600-5.500 6-5.500 1.300 0 2.500.3 3.500.9M15.500 13v4M13.500 15h4',
  roles: 'M10 2.500l6.500 2.500v5c0 4-2.800 6.500-6.500 7.500-3.700-1-6.500-3.500-6.500-7.500V5zM7 10l2 2 4-4',
  endpoints: 'M7 6l-4 4 4 4M13 6l4 4-4 4M11.200 4.500l-2.400 11',
  limits: 'M3.500 15a7.500 7.500 0 1 1 13 0M10 11.500L13.500 7M10 12.500a1 1 0 1 0 0-2 1 1 0 0 0 0 2z',
  key: 'M7 13a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM10 11l7 6M14 14.500l1.500-1.500',
  deliveries: 'M2.500 5h15v10.500h-15zM3 5.500l7 5.500 7-5.500',
  audit: 'M5 2.500h7l3.500 3.500v11.500H5zM12 2.500V6h3.500M7.500 10h5M7.500 13h5',
  health: 'M2.500 10.500h3.500l2-5 3.500 9.500 2-4.500h4',
  review: 'M11 17.500H4.500V2.500h7.500l3.500 3.500v3M12 2.500V6h3.500'
    + 'M13 16a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400zM15 15l2.500 2.500',
  access_review: 'M10 2.500l6.500 2.500v5c0 4-2.800 6.500-6.500 7.500-3.700-1-6.500-3.500-6.500-7.500V5zM10 7v3.500M10 13v.5',
  inbox: 'M3 11.500L5.500 3.500h9l2.500 8v5H3zM3 11.500h4c.3 1.600 1.500 2.500 3 2.500s2.700-.9 3-2.500h4',
  services: 'M5.500 7h9v8h-9zM10 7V3.500M10 3.500h.1M8 10.500v1M12 10.500v1M3 9.500v3M17 9.500v3',
  webhooks: 'M6.500 15.500a2.500 2.500 0 1 1-1-4.800M6.500 15.500H13'
    + 'M13.500 13a2.500 2.500 0 1 1 .1 5M13 15.500L9.500 8M9.300 8.200a2.500 2.500 0 1 1 3-1.200',
  administration: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 16a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  developers: 'M3 4h14v12H3zM6 8l2.500 2L6 12M10.500 12.500H14',
  state_none: 'M10 3a7 7 0 0 1 5 2.100M17 10a7 7 0 0 1-2 5M10 17a7 7 0 0 1-5-2.100M3 10a7 7 0 0 1 2-5',
  state_waits: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14z',
  state_looks: 'M9 14.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM13 13l4 4',
  state_half: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 3v14M12.500 4v12M15 6v8',
  state_not: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM7.500 7.500l5 5M12.500 7.500l-5 5',
  state_ended: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM5 15L15 5',
  menu: 'M3 5.500h14M3 10h14M3 14.500h14',
  close: 'M5 5l10 10M15 5L5 15',
  plus: 'M10 4v12M4 10h12',
  minus: 'M4 10h12',
  search: 'M9 14.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM13 13l4 4',
  left: 'M12 4l-6 6 6 6',
  right: 'M8 4l6 6-6 6',
  first: 'M10 4l-6 6 6 6M16 4l-6 6 6 6',
  last: 'M4 4l6 6-6 6M10 4l6 6-6 6',
  calendar: 'M3 5h14v12H3zM3 8.500h14M7 3v3.500M13 3v3.500',
  down: 'M5 8l5 5 5-5',
  up: 'M5 12l5-5 5 5',
  copy: 'M7 7h9v10H7zM4 13V3h9',
  check: 'M4 10.500l4 4 8-9',
  clock: 'M10 3.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13M10 6.500v3.700l2.500 1.500',
  warning: 'M10 3l7.500 13.500h-15zM10 8v4M10 14v.5',
  upload: 'M10 13V4M6.500 7L10 3.500 13.500 7M3.500 13v3.500h13V13',
  camera: 'M2.500 6h3.500l1.500-2h5L14 6h3.500v10h-15zM10 13.500a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400z',
  logout: 'M8 3H3.500v14H8M8 10h9M13.500 6.500L17 10l-3.500 3.500',
  send: 'M3 10l14-6.500-4.500 13.500-3-5.500zM9.500 11.500L17 3.500',
  trash: 'M4 6h12M8 6V3.500h4V6M5.500 6l1 11h7l1-11',
  edit: 'M4 16l.8-3.500L13 4.200l2.800 2.800-8.300 8.200zM11.500 5.800l2.700 2.700',
  link: 'M8.500 11.500l3-3M9 6.500l2-2a3 3 0 0 1 4.500 4.500l-2 2M11 13.500l-2 2A3 3 0 0 1 4.500 11l2-2',
  refresh: 'M16 10a6 6 0 1 1-1.800-4.300M16 3v3.500h-3.500',
  card: 'M2.500 5h15v10.500h-15zM5 12.500c0-1.500 1-2.300 2.300-2.300s2.300.8 2.300 2.300'
    + 'M7.300 10.200a1.300 1.300 0 1 0 0-2.600 1.300 1.300 0 0 0 0 2.600zM12 8.500h3.500M12 11.500h3.500',
  home: 'M3 9.500L10 3.500l7 6M5 8.500v8h10v-8M8.500 16.500v-4.500h3v4.500',
  do_sign: 'M3 16.500h14M5 13.500l.7-3L12.500 3.700l2.300 2.300-6.800 6.800z',
  do_approve: 'M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15zM6.800 10.300l2.200 2.200 4.200-4.800',
  do_update: 'M16 10a6 6 0 1 1-1.800-4.300M16 3v3.500h-3.500',
  do_delete: 'M4 6h12M8 6V3.500h4V6M5.500 6l1 11h7l1-11',
  move: 'M4 10h11M11 6l4 4-4 4',
  device: 'M3 4h14v9H3zM7 17h6M10 13v4',
  download: 'M10 3.500V13M6.500 9.500L10 13l3.500-3.500M3.500 13v3.500h13V13',
  print: 'M6 7V3h8v4M6 14H3V7h14v7h-3M6 11.500h8V17H6z',
  columns: 'M3 4h14v12H3zM8 4v12M12.500 4v12',
  bookmark: 'M5.500 3h9v14L10 13.500 5.500 17z',
  sun: 'M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM10 2v1.500M10 16.500V18M2 10h1.500M16.500 10H18'
    + 'M4.300 4.300l1.100 1.100M14.600 14.600l1.100 1.100M4.300 15.700l1.100-1.100M14.600 5.400l1.100-1.100',
};

/**
 * A small drawing beside a text; screen readers skip it.
 * @param {{name: string, size?: number}} props
 */
export const Icon = ({ name, size = 18 }) => html`
  <svg class="icon" width=${size} height=${size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>`;

/** Kontor's logo. */
export const Mark = ({ size = 28 }) => html`
  <svg class="mark" width=${size} height=${size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="7" /><path d="M10 8v16M22 8l-9 8 9 8" />
  </svg>`;

/** The bank's logo, or Kontor's. */
export const BankMark = ({ size = 28 }) => (LOGO
  ? html`<img class="mark" src=${LOGO} width=${size} height=${size} alt="" />`
  : html`<${Mark} size=${size} />`);
