// The words of a text as the server searches them, to show what a search has matched. modules/kit/types/words.go has the rules.

const SPELLED = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ð: 'd', þ: 'th', ł: 'l', ħ: 'h', ı: 'i' };
const WORD = /[\p{L}\p{N}\p{M}'’ʼ`]+/gu;

/** Returns a word in lower case without accents, with one spelling for each umlaut: Müller, Mueller and Muller are the same. */
export function fold(word) {
  let folded = '';
  let held = ''; // an e that belongs to an umlaut if another letter follows
  for (const letter of word.normalize('NFKD').replace(/[\p{Mn}'’ʼ`]/gu, '').toLowerCase()) {
    for (const one of SPELLED[letter] ?? letter) {
      held = one === 'e' && !held && /(?:[ao]|(?<![aeouq])u)$/.test(folded) ? one : '';
      if (!held) folded += one;
    }
  }
  return folded + held;
}

/** Returns the folded words of a text. */
export const words = (text) => (text.match(WORD) ?? []).map(fold).filter(Boolean);

/** Reports whether each searched word begins a word of the text. */
export const matches = (text, searched) => {
  const own = words(text);
  return searched.every((word) => own.some((one) => one.startsWith(word)));
};

/** Returns how many characters of a word a searched word takes, or 0 if the word does not begin with it. */
function taken(word, searched) {
  if (!fold(word).startsWith(searched)) return 0;
  const letters = [...word];
  for (let n = 1; n <= letters.length; n++) {
    const part = letters.slice(0, n).join('');
    if (fold(part).startsWith(searched)) return part.length;
  }
  return word.length;
}

/**
 * Splits a text into parts that begin like a searched word, and the rest.
 * @param {string} text
 * @param {string[]} searched folded words
 * @returns {{text: string, hit: boolean}[]}
 */
export function parts(text, searched) {
  const found = [];
  let at = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const length = Math.max(0, ...searched.map((one) => taken(word, one)));
    if (!length) continue;
    if (index > at) found.push({ text: text.slice(at, index), hit: false });
    found.push({ text: text.slice(index, index + length), hit: true });
    at = index + length;
  }
  if (at < text.length) found.push({ text: text.slice(at), hit: false });
  return found;
}
