// Runs before the first paint, as a classic script, so that the page does not flash in the wrong theme. It also begins to load what
// main.js will ask for, the texts and the first screen, because each step of a slow network takes a round trip.
(() => {
  const LANGUAGES = ['de', 'fr', 'it', 'en'];
  const base = document.currentScript.src.replace('app/theme.js', '');
  const stored = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // Storage may be blocked; then the system's theme applies.
    }
  };
  function preload(address, attributes) {
    const link = document.createElement('link');
    link.href = base + address;
    document.head.append(Object.assign(link, attributes));
  }
  const theme = stored('kontor.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  const { color } = JSON.parse(document.getElementById('bank').textContent);
  if (color) { // In the dark theme it is lighter.
    const set = (name, light, dark) => document.documentElement.style.setProperty(name, `light-dark(${light}, ${dark})`);
    const lighter = (share) => `color-mix(in oklab, ${color} ${share}%, white)`;
    set('--brand', color, `color-mix(in oklab, ${color} 60%, black)`);
    set('--accent', color, lighter(35));
    set('--accent-hover', `color-mix(in oklab, ${color} 80%, black)`, lighter(25));
    set('--accent-soft', lighter(8), `color-mix(in oklab, ${color} 30%, black)`);
  }
  const tags = [stored('kontor.language'), ...navigator.languages].filter(Boolean).map((tag) => tag.slice(0, 2).toLowerCase());
  const language = tags.find((tag) => LANGUAGES.includes(tag)) ?? 'en';
  document.documentElement.lang = language;
  const texts = (part) => preload(`i18n/${part}${language}.json`, { rel: 'preload', as: 'fetch', crossOrigin: 'anonymous' });
  texts('');

  if (stored('kontor.font')) preload('style/font.css', { rel: 'stylesheet' }); // An earlier visit has left the font in the cache.

  const rows = JSON.parse(document.getElementById('screens').textContent);
  const pattern = (path) => new RegExp(`^${path.replace(/\/:\w+\?/g, '(/[^/]+)?').replace(/\/:\w+/g, '/[^/]+')}$`);
  const found = rows.find((row) => pattern(row.path).test(location.pathname));
  const signedIn = stored('kontor.session');
  const first = signedIn || found?.public ? found : rows.find((row) => row.path === '/signin');
  if (first && !first.client?.module) preload(`app/screens/${first.module}.js`, { rel: 'modulepreload' });
  if (first?.public && !signedIn) first.texts?.forEach((part) => texts(`${part}/`));
})();
