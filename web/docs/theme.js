// Runs before the first paint: the page must not flash in the wrong theme. The choice is the console's.
(() => {
  let theme = '';
  try {
    theme = localStorage.getItem('kontor.theme') ?? '';
  } catch {
    // Storage may be forbidden; the system's theme is used then.
  }
  const dark = theme === 'dark' || theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.classList.toggle('dark-mode', dark);
})();
