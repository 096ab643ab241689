import { isOwn, session, SignedOut } from './session.js';

/**
 * Returns a function that runs asynchronous functions of the signed-in user one after the other, in the order of the calls, so that
 * the server gets the last change last. Each call resolves or fails as its function does; a function that waits when its user signs
 * out does not run and fails with SignedOut.
 */
export function oneByOne() {
  let last = Promise.resolve();
  return (fn) => {
    const token = session.get()?.access_token;
    const mine = last.then(() => {
      if (!isOwn(token)) throw new SignedOut();
      return fn();
    });
    last = mine.catch(() => {});
    return mine;
  };
}

/**
 * Numbers the loads of one thing whose answers may arrive in another order. The returned function begins a load. It returns a
 * function to call with the answer: whether no later load has answered before.
 */
export function newestOnly() {
  let begun = 0;
  let answered = 0;
  return () => {
    const mine = ++begun;
    return () => {
      if (mine < answered) return false;
      answered = mine;
      return true;
    };
  };
}
