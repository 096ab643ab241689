// Re-exports the view library, so that modules need a single import.
import { h } from '../vendor/preact.mjs';
import htm from '../vendor/htm.mjs';

export { render, Fragment, createContext } from '../vendor/preact.mjs';
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext, useId } from '../vendor/hooks.mjs';

/** Tagged template that creates virtual nodes; values are always inserted as text, never as markup. */
export const html = htm.bind(h);
