// The one-time code of another sign-in with the provider, for a change of the sign-in methods. The provider returns the browser with
// it in the fragment, which no server sees.
let code = null;

/** Keeps the code of the address, and removes it there. */
export function keepProviderProof() {
  const found = /^#oidc_proof=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  code = found[1];
  history.replaceState(history.state, '', location.pathname + location.search);
}

/** Returns the kept code once, or null. */
export function takeProviderProof() {
  const taken = code;
  code = null;
  return taken;
}
