/** The letter without accents and case, so that É and e are the same. */
const folded = (letter) => letter.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/**
 * Says which letters of a text are in another one, too, in the same order: the longest common subsequence.
 * @param {string} text
 * @param {string} other
 * @returns {boolean[]} for each letter of the text
 */
export function commonLetters(text, other) {
  const a = [...text].map(folded);
  const b = [...other].map(folded);
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const common = a.map(() => false);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      common[i] = true;
      i += 1;
      j += 1;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
    else j += 1;
  }
  return common;
}

const MOST = 600; // letters that are compared; longer names are shown without marks

/**
 * Splits a name into pieces: letters that matched, and the rest.
 * @param {string} name
 * @param {[string, string][]} parts parts of the name, each with the part of the other name that it matched
 * @returns {{text: string, same: boolean}[]}
 */
export function markedPieces(name, parts) {
  if (name.length > MOST) return [{ text: name, same: false }];
  const letters = [...name];
  const same = letters.map(() => false);
  const words = letters.join('');
  for (const [own, other] of parts) {
    const at = words.indexOf(own);
    if (at < 0 || own.length > MOST || other.length > MOST) continue;
    const first = [...words.slice(0, at)].length;
    const common = commonLetters(own, other);
    const all = !common.includes(true); // the same in another alphabet
    common.forEach((one, i) => {
      same[first + i] ||= one || all;
    });
  }
  const pieces = [];
  letters.forEach((letter, i) => {
    const last = pieces.at(-1);
    if (last && last.same === same[i]) last.text += letter;
    else pieces.push({ text: letter, same: same[i] });
  });
  return pieces;
}
