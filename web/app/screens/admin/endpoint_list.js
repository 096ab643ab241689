import { html } from '../../lib.js';
import { api } from '../../api.js';
import { t, term } from '../../i18n.js';

/** Loads all pages of a list. */
export async function loadAll(path, query) {
  const rows = [];
  for (;;) {
    const page = await api.get(path, { ...query, limit: 100, offset: rows.length });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

/** Loads all endpoints. */
export const listEndpoints = () => loadAll('/v1/rbac/endpoints');

/** The description of an endpoint in the user's language. */
export function summaryOf({ name, summary }) {
  const key = `endpoint.${name}`;
  const text = t(key);
  return text === key ? summary : text;
}

/** The name of a group of endpoints. */
export const groupName = (tag) => term('endpoint_tag', tag);

/** An endpoint's method and path. */
export function EndpointName({ name }) {
  const [method, path] = name.split(' ');
  return html`<span class="endpoint">
    <span class=${`method ${method.toLowerCase()}`}>${method}</span> <span class="code">${path}</span>
  </span>`;
}
