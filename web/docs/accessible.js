// Improves the accessibility of the explorer: names for its controls, headings in order, and landmarks.

const NAMES = [
  ['#servers', 'Server'],
  ['.examples-select-element', 'Example'],
  ['.body-param__text', 'Request body'],
  ['.operation-filter-input', 'Filter by tag'],
  ['.parameters-col_description :is(input, select, textarea)', 'Value of the parameter'],
  ['.auth-container input', 'Value'],
  ['.curl-command textarea, .curl.microlight', 'Request as a command'],
];
const REGIONS = [
  ['.information-container', 'About'],
  ['.scheme-container', 'Server and authorisation'],
  ['.filter-container', 'Filter'],
  ['.models', 'Schemas'],
];

/** Returns the level of a heading; the explorer's headings start one level too deep, below its title. */
function level(heading) {
  if (heading.classList.contains('title')) return 1;
  return Math.max(2, Number(heading.tagName[1]) - 1);
}

function fix(root) {
  const each = (selector, change) => root.querySelectorAll(selector).forEach(change);
  for (const [selector, name] of NAMES) {
    each(selector, (control) => {
      if (!control.hasAttribute('aria-label')) control.setAttribute('aria-label', control.placeholder || name);
    });
  }
  for (const [selector, name] of REGIONS) {
    each(selector, (region) => {
      region.setAttribute('role', 'region');
      region.setAttribute('aria-label', name);
    });
  }
  each('.microlight, .headers-wrapper', (box) => (box.tabIndex = 0)); // They scroll, so the keyboard must reach them.
  each('.close-modal', (close) => close.setAttribute('aria-label', 'Close'));
  each('button.authorize[aria-label]', (button) => button.removeAttribute('aria-label')); // It contradicts the button's text.
  each('button .opblock-summary-path a[href]', (link) => link.removeAttribute('href')); // A link must not be inside a button.
  each('h1, h2, h3, h4, h5, h6', (heading) => heading.setAttribute('aria-level', level(heading)));
}

/** Fixes the present elements, and those that the explorer adds later. */
export function keepAccessible(root) {
  fix(root);
  new MutationObserver(() => fix(root)).observe(root, { childList: true, subtree: true });
}
