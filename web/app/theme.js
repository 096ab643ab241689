// Runs before the first paint, as a classic script, so that the page does not flash in the wrong theme.
try {
  const theme = localStorage.getItem('kontor.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  const language = localStorage.getItem('kontor.language');
  if (language) document.documentElement.lang = language;
  if (localStorage.getItem('kontor.font')) { // An earlier visit has left the font in the browser's cache.
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = document.currentScript.src.replace('app/theme.js', 'style/font.css');
    document.head.append(link);
  }
} catch {
  // Storage may be blocked; then the system's theme applies.
}
