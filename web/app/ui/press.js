let pressed = null; // ends with the press of a pointer that is held

addEventListener('pointerdown', () => {
  pressed = new Promise((ended) => {
    // A click follows the release in the same task.
    for (const type of ['pointerup', 'pointercancel']) addEventListener(type, () => setTimeout(ended), { capture: true, once: true });
  }).then(() => (pressed = null));
}, { capture: true });

/**
 * Calls a function, and while a pointer is pressed after its release. A layout that changes between press and release, such as by
 * what closes when a field loses the focus, would move the pressed button away, and its click would be lost.
 */
export const afterPress = (call) => (pressed ? pressed.then(call) : call());
