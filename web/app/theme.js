// Runs before the first paint, as a classic script, so that the page does not flash in the wrong theme.
try {
  const theme = localStorage.getItem('kontor.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  const language = localStorage.getItem('kontor.language');
  if (language) document.documentElement.lang = language;
} catch {
  // Storage may be blocked; then the system's theme applies.
}
