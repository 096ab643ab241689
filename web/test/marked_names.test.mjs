import assert from 'node:assert/strict';
import test from 'node:test';
import { commonLetters, markedPieces } from '../app/marked_names.js';

const marked = (name, parts) => markedPieces(name, parts).map(({ text, same }) => (same ? `[${text}]` : text)).join('');

test('letters that both names have are marked', () => {
  assert.equal(marked('Hans Müller', [['Hans', 'Hans'], ['Müller', 'Muller']]), '[Hans] [Müller]');
  assert.equal(marked('Sergey LAVROV', [['LAVROV', 'Lawrow']]), 'Sergey [LA]V[RO]V');
  assert.equal(marked('Anna Keller', [['Keller', 'Kelelr']]), 'Anna [Kel]l[er]');
});

test('parts that are not in the name mark nothing', () => {
  assert.equal(marked('Anna', [['Eva', 'Eva']]), 'Anna');
  assert.equal(marked('', [['Eva', 'Eva']]), '');
});

test('a part that matched in another alphabet is marked as a whole', () => {
  assert.equal(marked('Сергей Лавров', [['Сергей', 'Sergej']]), '[Сергей] Лавров');
});

test('letters outside of the basic plane stay whole', () => {
  assert.equal(marked('𝔄nna 😀', [['𝔄nna', 'Anna']]), '𝔄[nna] 😀');
  assert.deepEqual(commonLetters('ab', ''), [false, false]);
});

test('a very long name is not compared', () => {
  assert.equal(markedPieces('x'.repeat(5000), [['x', 'x']]).length, 1);
});
