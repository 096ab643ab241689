// Fails for each breaking change of the API that the changelog does not announce.
//
//   node .ci/announced.mjs CHANGES CHANGELOG
//
// CHANGES is the output of "oasdiff breaking --format json". The changelog announces a change by an entry of its part "Unreleased" that
// begins with "- Breaking:" and names the operation, such as `DELETE /v1/payers/{id}`.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const ERROR = 3; // Lower levels are warnings: changes that break only programs that rely on what was not promised.
const SHOWN = 50; // A shared schema changes in hundreds of operations.

/** The entries of the changelog about breaking changes that no version has yet. */
export function announcements(changelog) {
  const unreleased = changelog.split(/^## /m).find((part) => part.startsWith('Unreleased')) ?? '';
  return unreleased.split(/^- /m).filter((entry) => entry.startsWith('Breaking:'));
}

/** The breaking changes that no announcement names. */
export function unannounced(changes, changelog) {
  const named = announcements(changelog);
  const isNamed = ({ operation, path }) => named.some((entry) => entry.includes(`\`${operation} ${path}\``));
  return changes.filter((change) => change.level >= ERROR && !isNamed(change));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [changes, changelog] = process.argv.slice(2).map((name) => readFileSync(name, 'utf8'));
  const all = JSON.parse(changes);
  const left = unannounced(all, changelog);
  for (const { operation, path, text } of left.slice(0, SHOWN)) {
    console.log(`${operation} ${path}: ${text}`);
  }
  console.log(`${left.length} breaking changes of the API are not announced; ${all.filter((change) => change.level < ERROR).length} warnings`);
  if (left.length) {
    console.log('reason: the API broke. Keep it compatible, or announce it in CHANGELOG.md below "## Unreleased": - Breaking: `METHOD /path` …');
    process.exitCode = 1;
  }
}
