const sheets = new Map(); // name → the load of a style sheet

/**
 * Loads a style sheet that the first screens do not need, once. A module that awaits it is not shown without its styles.
 * @param {string} name of a file in web/style
 */
export function loadStyle(name) {
  if (!sheets.has(name)) {
    sheets.set(name, new Promise((done) => {
      const link = document.createElement('link');
      link.rel = 'stylesheet';
      link.href = new URL(`../style/${name}.css`, import.meta.url);
      link.onload = done;
      link.onerror = () => { // without it the screen works, and the next one tries again
        sheets.delete(name);
        link.remove();
        done();
      };
      document.head.append(link);
    }));
  }
  return sheets.get(name);
}

/** Loads the font once a screen after sign-in is shown. From then on, app/theme.js loads it first. */
export async function loadFont() {
  if (localStorage.getItem('kontor.font')) return;
  await loadStyle('font');
  localStorage.setItem('kontor.font', 'loaded');
}
