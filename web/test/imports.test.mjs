import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const web = fileURLToPath(new URL('..', import.meta.url));
const STATIC = /^\s*(?:import|export)\b[^'"()]*['"](\.[^'"]+)['"]/gm;
const DYNAMIC = /\bimport\(\s*['"`](\.[^'"`]+)['"`]\s*\)/g;
const WORKER = 'app/session_worker.js'; // Browsers load it by its address.

/** Returns the modules that a module imports, static and dynamic. A placeholder in a dynamic import stands for any file. */
function importsOf(name, text, files) {
  const found = [...text.matchAll(STATIC), ...text.matchAll(DYNAMIC)].map((match) => join(dirname(name), match[1]));
  return found.flatMap((path) => {
    if (!path.includes('${')) return [path];
    const pattern = new RegExp(`^${path.replace(/[.+]/g, '\\$&').replace(/\$\{[^}]*\}/g, '.+')}$`);
    return files.filter((file) => pattern.test(file));
  });
}

/** Returns a circle of imports as a list of modules, or null. */
function circleIn(graph) {
  const done = new Set();
  function visit(name, path) {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
    if (done.has(name)) return null;
    for (const next of graph.get(name) ?? []) {
      const circle = visit(next, [...path, name]);
      if (circle) return circle;
    }
    done.add(name);
    return null;
  }
  for (const name of graph.keys()) {
    const circle = visit(name, []);
    if (circle) return circle;
  }
  return null;
}

const files = readdirSync(join(web, 'app'), { recursive: true })
  .map((name) => join('app', name))
  .filter((name) => name.endsWith('.js'));
const graph = new Map(files.map((name) => [name, importsOf(name, readFileSync(join(web, name), 'utf8'), files)]));

test('no module imports itself through others, neither static nor dynamic', () => {
  assert.ok(graph.get('app/main.js').includes('app/screens/overview.js'), 'the dynamic import of the screens was not found');
  assert.deepEqual(circleIn(graph), null);
});

test('every import names a file, and every file is imported', () => {
  const imported = new Set([...graph.values()].flat());
  for (const [name, list] of graph) {
    for (const path of list) assert.ok(graph.has(path) || path.startsWith('vendor'), `${name} imports ${path}`);
    const isEntry = ['app/main.js', 'app/theme.js', WORKER].includes(name);
    assert.ok(isEntry || imported.has(name), `${name} is not used`);
  }
});

test('a circle is found, also through a dynamic import with a placeholder', () => {
  const modules = {
    'app/a.js': 'import { b } from \'./b.js\';',
    'app/b.js': 'const load = (x) => import(`./s/${x}.js`);',
    'app/s/c.js': 'export * from \'../a.js\';',
  };
  const names = Object.keys(modules);
  const circle = circleIn(new Map(names.map((name) => [name, importsOf(name, modules[name], names)])));
  assert.deepEqual(circle, ['app/a.js', 'app/b.js', 'app/s/c.js', 'app/a.js']);
});
