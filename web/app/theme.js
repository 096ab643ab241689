// Runs before the first paint, as a classic script: the page must not flash in the wrong theme.
try {
  const theme = localStorage.getItem('kontor.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  const language = localStorage.getItem('kontor.language');
  if (language) document.documentElement.lang = language;
} catch {
  // Storage may be forbidden; the system's theme is used then.
}
