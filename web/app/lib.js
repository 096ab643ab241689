// One place to import the view library from, so that screens need a single line.
import { h } from '../vendor/preact.mjs';
import htm from '../vendor/htm.mjs';

export { render, Fragment, createContext } from '../vendor/preact.mjs';
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext, useId } from '../vendor/hooks.mjs';

/** Tagged template that makes virtual nodes; text in it is always text, never markup. */
export const html = htm.bind(h);
