import { html } from '../../lib.js';
import { api } from '../../api.js';

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

/** An endpoint's method and path. */
export function EndpointName({ name }) {
  const [method, path] = name.split(' ');
  return html`<span class="endpoint">
    <span class=${`method ${method.toLowerCase()}`}>${method}</span> <span class="code">${path}</span>
  </span>`;
}
