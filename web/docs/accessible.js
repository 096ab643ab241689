// Mends what the explorer leaves undone for those who do not see the page or do not use a mouse: names for its
// controls, headings in order, places by which one can find one's way.

const NAMES = [
  ['#servers', 'Server'],
  ['.examples-select-element', 'Example'],
  ['.body-param__text', 'Request body'],
  ['.operation-filter-input', 'Filter by tag'],
  ['.parameters-col_description :is(input, select, textarea)', 'Value of the parameter'],
  ['.auth-container input', 'Value'],
  ['.curl-command textarea, .curl.microlight', 'Request as a command'],
];
const PLACES = [['.information-container', 'About'], ['.scheme-container', 'Server and authorisation'], ['.filter-container', 'Filter'], ['.models', 'Schemas']];

/** The explorer begins its headings one level too deep, below its title. */
function level(heading) {
  if (heading.classList.contains('title')) return 1;
  return Math.max(2, Number(heading.tagName[1]) - 1);
}

function mend(root) {
  for (const [selector, name] of NAMES) {
    for (const control of root.querySelectorAll(selector)) if (!control.hasAttribute('aria-label')) control.setAttribute('aria-label', control.placeholder || name);
  }
  for (const [selector, name] of PLACES) {
    for (const place of root.querySelectorAll(selector)) {
      place.setAttribute('role', 'region');
      place.setAttribute('aria-label', name);
    }
  }
  for (const box of root.querySelectorAll('.microlight, .headers-wrapper')) box.tabIndex = 0; // They scroll: the keyboard must get there.
  for (const close of root.querySelectorAll('.close-modal')) close.setAttribute('aria-label', 'Close');
  for (const button of root.querySelectorAll('button.authorize[aria-label]')) button.removeAttribute('aria-label'); // It says another thing than the button does.
  for (const link of root.querySelectorAll('button .opblock-summary-path a[href]')) link.removeAttribute('href'); // The button around it leads to the same place.
  for (const heading of root.querySelectorAll('h1, h2, h3, h4, h5, h6')) heading.setAttribute('aria-level', level(heading));
}

/** Mends what is there, and whatever the explorer draws later. */
export function keepAccessible(root) {
  mend(root);
  new MutationObserver(() => mend(root)).observe(root, { childList: true, subtree: true });
}
