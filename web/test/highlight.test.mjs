import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fold, matches, parts, words } from '../app/highlight.js';

const marked = (text, searched) => parts(text, words(searched)).map((part) => (part.hit ? `[${part.text}]` : part.text)).join('');

test('fold gives spellings of a name one form', () => {
  for (const [word, want] of [['Müller', 'muller'], ['MUELLER', 'muller'], ['Bauer', 'bauer'], ['Straße', 'strasse'], ['Søren', 'soren'],
    ['Soeren', 'soren'], ['D’Angelo', 'dangelo'], ['Zoë', 'zoe'], ['Noël', 'nol'], ['Noel', 'nol'], ['Quelle', 'quelle']]) {
    assert.equal(fold(word), want, word);
  }
});

test('parts shows what was matched', () => {
  for (const [text, searched, want] of [
    ['Beat Küng', 'beat kung', '[Beat] [Küng]'], ['Jörg Müller', 'muel', 'Jörg [Mül]ler'], ['Müllerhans', 'mueller', '[Müller]hans'],
    ['Mueller', 'mül', '[Muel]ler'], ['b.kueng@bank.example', 'kung bank', 'b.[kueng]@[bank].example'], ['Weiß', 'weiss', '[Weiß]'],
    ['<b>Anna</b>', 'anna', '<b>[Anna]</b>'], ['Anna', '', 'Anna'], ['', 'anna', ''], ['Anna', 'ber', 'Anna'],
  ]) assert.equal(marked(text, searched), want, `${searched} in ${text}`);
});

test('matches wants every word', () => {
  assert.ok(matches('New customer', words('cust new')));
  assert.ok(!matches('New customer', words('new task')));
});
