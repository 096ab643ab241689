// Runs before the first paint, so that the page does not flash in the wrong theme. It uses the console's preference.
(() => {
  let theme = '';
  try {
    theme = localStorage.getItem('kontor.theme') ?? '';
  } catch {
    // Storage may be blocked; then the system's theme applies.
  }
  const dark = theme === 'dark' || theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.classList.toggle('dark-mode', dark);
})();
