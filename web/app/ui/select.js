const QUIET = ['Tab', 'Escape', 'Shift', 'Control', 'Alt', 'Meta'];

/**
 * For a select that does something at once when a value is chosen: a key opens its list instead of changing the value,
 * so that the keyboard gets past the first value. Enter and Space open it anyway.
 * @param {KeyboardEvent} event
 */
export function openByKey(event) {
  const select = event.currentTarget;
  if (QUIET.includes(event.key) || event.ctrlKey || event.metaKey || !select.showPicker) return;
  event.preventDefault();
  try {
    select.showPicker();
  } catch {
    // It is open already, or the browser wants another sign of the user first.
  }
}
