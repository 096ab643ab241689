// The panel with the examples of an operation, as a component of the explorer.

import { callOf, LANGUAGES } from './examples.js';

/** The language that the reader chose last, for all operations. */
let chosen = LANGUAGES[0][0];

/** A plugin of the explorer that shows the examples of an operation above its responses. */
export const examplePlugin = (spec) => ({ React }) => {
  const { createElement: element, useState, Fragment } = React;

  function Copy({ text }) {
    const [done, setDone] = useState(false);
    const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true));
    return element('button', { type: 'button', className: 'example-copy', onClick: copy }, done ? 'Copied' : 'Copy');
  }

  function Examples({ path, method }) {
    const [language, setLanguage] = useState(chosen);
    const choose = (key) => {
      chosen = key;
      setLanguage(key);
    };
    if (!spec.paths[path]?.[method]) return null;
    const [, name, write] = LANGUAGES.find(([key]) => key === language);
    const text = write(callOf(spec, location.origin, path, method));
    return element('section', { className: 'examples', 'aria-label': 'Example' },
      element('div', { className: 'example-head' },
        element('h4', null, 'Example'),
        element('div', { role: 'group', 'aria-label': 'Language' }, LANGUAGES.map(([key, label]) => element('button', {
          key, type: 'button', 'aria-pressed': key === language, onClick: () => choose(key),
        }, label))),
        element(Copy, { key: text, text })),
      element('pre', { tabIndex: 0, 'aria-label': `Example in ${name}` }, element('code', null, text)));
  }

  return {
    wrapComponents: {
      responses: (Responses) => (props) => element(Fragment, null,
        element(Examples, { path: props.path, method: props.method }), element(Responses, props)),
    },
  };
};
