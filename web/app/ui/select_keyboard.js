const IGNORED = ['Tab', 'Escape', 'Shift', 'Control', 'Alt', 'Meta'];

/**
 * Opens the list of a select on a key press instead of changing its value. A select that acts as soon as a value is
 * chosen needs this: without it the keyboard could not get past the first value. Enter and Space open the list anyway.
 * @param {KeyboardEvent} event
 */
export function openOnKeyDown(event) {
  const select = event.currentTarget;
  if (IGNORED.includes(event.key) || event.ctrlKey || event.metaKey || !select.showPicker) return;
  event.preventDefault();
  try {
    select.showPicker();
  } catch {
    // The list is open already, or the browser requires a click first.
  }
}
