// The list of operations beside the explorer: by group, with a search.
import { ignoreHeldEnter } from './held_enter.js'; // of the console; web/docs.go serves it here too

/** Makes an element. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The operations of the document by their first tag, in the order of the document's tags. */
function groupsOf(spec) {
  const groups = new Map((spec.tags ?? []).map(({ name }) => [name, []]));
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? 'Other';
      groups.set(tag, [...(groups.get(tag) ?? []), { path, method, operation, tag }]);
    }
  }
  return [...groups].filter(([, rows]) => rows.length);
}

function entry({ path, method, operation, tag }, open) {
  const link = make('a', { href: `#/${encodeURIComponent(tag)}/${encodeURIComponent(operation.operationId)}` },
    make('span', { className: `side-method ${method}`, textContent: method.toUpperCase() }),
    make('span', { className: 'side-text', textContent: operation.summary.split('. ')[0].replace(/\.$/, '') }));
  link.title = `${method.toUpperCase()} ${path}`;
  link.addEventListener('click', (event) => {
    event.preventDefault();
    history.replaceState(null, '', link.href);
    open(tag, operation.operationId);
  });
  const item = make('li', {}, link);
  item.dataset.search = `${tag} ${method} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase();
  return item;
}

/**
 * Fills the list of operations.
 * @param {HTMLElement} place
 * @param {object} spec the API document
 * @param {(tag: string, operation: string) => void} open shows an operation
 */
export function fillSidebar(place, spec, open) {
  const field = make('input', { type: 'search', placeholder: 'Search operations', autocomplete: 'off', spellcheck: false });
  field.setAttribute('aria-label', 'Search operations');
  field.setAttribute('aria-keyshortcuts', '/');
  const groups = groupsOf(spec).map(([tag, rows]) => {
    const list = make('ul', {}, ...rows.map((row) => entry(row, open)));
    const group = make('details', { className: 'side-group' }, make('summary', { textContent: tag }), list);
    return { group, items: [...list.children] };
  });
  const none = make('p', { className: 'side-none', textContent: 'No operation fits.', hidden: true });
  none.setAttribute('role', 'status');
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const { group, items } of groups) {
      for (const item of items) item.hidden = !words.every((word) => item.dataset.search.includes(word));
      const shown = items.filter((item) => !item.hidden).length;
      group.hidden = !shown;
      group.open = words.length > 0 && shown > 0;
      found += shown;
    }
    none.hidden = found > 0;
  };
  field.addEventListener('input', filter);
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.repeat) return;
    event.preventDefault();
    ignoreHeldEnter(); // It must not close the operation that it has opened and that has the focus.
    groups.flatMap(({ items }) => items).find((item) => !item.hidden && field.value)?.querySelector('a').click();
  });
  document.addEventListener('keydown', (event) => {
    const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
  });
  place.append(field, ...groups.map(({ group }) => group), none);
}
