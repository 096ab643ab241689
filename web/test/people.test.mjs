import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerWith, json, signedIn } from './browser.mjs';

signedIn();
const { api } = await import('../app/api.js');
const { switchLanguage } = await import('../app/i18n.js');
const people = await import('../app/people.js');

const anna = '01980000-0000-7000-8000-0000000000a1';
const beat = '01980000-0000-7000-8000-0000000000b2';
const unknown = '01980000-0000-7000-8000-00000000ffff';

beforeEach(async () => {
  people.forgetPeople();
  await switchLanguage('en');
});

test('people are remembered from records, lists and arrays', async () => {
  answerWith(
    json({ id: 't1', created_by: anna, people: { [anna]: { display_name: 'Anna Keller', staff: true, user_name: 'a.keller' } } }),
    json([{ id: 'c1', people: { [beat]: { display_name: 'Beat Frei', staff: false } } }, { id: 'c2', people: {} }]),
  );
  await api.get('/v1/tasks/t1');
  await api.page('/v1/chats');
  assert.deepEqual([people.nameOf(anna), people.signInNameOf(anna), people.isStaff(anna)], ['Anna Keller', 'a.keller', true]);
  assert.deepEqual([people.nameOf(beat), people.signInNameOf(beat), people.isStaff(beat)], ['Beat Frei', '', false]);
});

test('other members of an answer are no source of names', () => {
  people.learnPeople({ metadata: { names: { [anna]: 'The Boss' } }, assignees: [{ user_id: anna, name: 'The Boss' }] });
  people.learnPeople({ people: { [anna]: 'The Boss' } });
  people.learnPeople({ people: null });
  people.learnPeople('people');
  people.learnPeople(null);
  assert.equal(people.nameOf(anna), 'Unnamed user 000000a1');
  assert.equal(people.hasName(anna), false);
});

test('without a display name the sign-in name counts, then the end of the id, in each language', async () => {
  people.learnPeople({
    people: { [anna]: { display_name: '', staff: true, user_name: 'a.keller' }, [beat]: { display_name: ' ', staff: false } },
  });
  assert.equal(people.nameOf(anna), 'a.keller');
  for (const [language, want] of Object.entries({
    en: 'Unnamed user 000000b2', de: 'Benutzer ohne Namen 000000b2', fr: 'Utilisateur sans nom 000000b2', it: 'Utente senza nome 000000b2',
  })) {
    await switchLanguage(language);
    assert.equal(people.nameOf(beat), want);
  }
});

test('a later answer replaces a name, and an answer without people keeps it', () => {
  people.learnPeople({ people: { [anna]: { display_name: 'Anna Keller', staff: false } } });
  people.learnPeople({ people: {} });
  assert.equal(people.nameOf(anna), 'Anna Keller');
  people.learnPeople({ people: { [anna]: { display_name: 'Anna Frei', staff: false } } });
  assert.equal(people.nameOf(anna), 'Anna Frei');
  people.changeDisplayName(anna, 'Anna Meier');
  assert.equal(people.nameOf(anna), 'Anna Meier');
});

test('the names of user records are remembered, and an empty one removes the name', () => {
  people.learnUsers([{ id: anna, display_name: 'Anna Keller' }, { id: beat }]);
  assert.equal(people.nameOf(anna), 'Anna Keller');
  people.learnUsers([{ id: anna, display_name: '' }]);
  assert.equal(people.hasName(anna), false);
});

test('the user has a name even when the API says nothing about them', () => {
  assert.equal(people.myId(), 'u1');
  assert.equal(people.nameOf('u1'), 'anna@example.ch');
});

test('names of object members are no people', () => {
  for (const id of ['constructor', '__proto__', 'toString']) assert.equal(people.hasName(id), false, id);
  people.learnPeople(JSON.parse('{"people": {"__proto__": {"display_name": "x"}}}'));
  assert.equal(people.hasName(unknown), false);
});

test('everything is forgotten before another user signs in', () => {
  people.learnPeople({ people: { [anna]: { display_name: 'Anna Keller', staff: true, user_name: 'a.keller' } } });
  people.forgetPeople();
  assert.deepEqual([people.nameOf(anna), people.isStaff(anna)], ['Unnamed user 000000a1', false]);
});

test('initials are the first letters of two words, also of names with marks, pictures and other scripts', () => {
  for (const [name, want] of Object.entries({
    'Anna Keller': 'AK', 'a.keller@bank.ch': 'AK', Ute: 'U', '': '?', '🦊 Fuchs': 'F', '🦊Fuchs Reto': 'FR', '👩‍👩‍👧': '👩‍👩‍👧', '🇨🇭 🇮🇹': '🇨🇭',
    'e\u0301mile Zola': 'ÉZ', 'q\u0307uinn': 'Q\u0307', '3M Schweiz': '3S', 'משה כהן': 'מכ', '(Lea) Frei': 'LF', '—': '—',
  })) {
    assert.equal(people.initials(name), want, name);
  }
});
