// The rules for the console's JavaScript; `make lint-console` applies them. The linter runs from the repository's root.
import js from '@eslint/js';
import stylistic from '@stylistic/eslint-plugin';
import globals from 'globals';

const rules = {
  ...js.configs.recommended.rules,
  '@stylistic/max-len': ['error', { code: 140 }],
  'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_$', caughtErrors: 'none' }],
  'no-undef': 'error',
};

/** The rules for some files, which run where these globals exist. */
const where = (files, names) => ({
  files,
  plugins: { '@stylistic': stylistic },
  languageOptions: { ecmaVersion: 2025, sourceType: 'module', globals: names },
  linterOptions: { reportUnusedDisableDirectives: 'error' },
  rules,
});

export default [
  where(['web/app/**/*.js', 'web/docs/*.js'], globals.browser),
  where(['web/app/session_worker.js'], globals.serviceworker),
  where(['web/test/**/*.mjs', 'web/lint/*.mjs'], { ...globals.browser, ...globals.node }),
];
