import { html } from '../lib.js';
import { caller, may } from '../access.js';
import { api } from '../api.js';
import { t } from '../i18n.js';
import { store, useStore } from '../store.js';

const logged = store(false); // the server keeps requests, and the caller may see them
let asked = false;

caller.watch(() => {
  asked = false;
  logged.set(false);
});

/** Asks the server once whether it keeps requests, for those who may see them. */
function ask() {
  if (asked || !may('roles', 'read_all')) return;
  asked = true;
  api.get('/v1/requests/status').then(({ keep }) => logged.set(keep > 0), () => {});
}

/** The id of a request that failed; for administrators a link to the request, if the server keeps it. */
export function RequestId({ id }) {
  ask();
  const text = t('error.request', { id });
  return useStore(logged) ? html`<a href=${`/admin/requests?request_id=${id}`}>${text}</a>` : text;
}
