import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as rules from '../app/screens/decision_rules.js';

const kyc = (about = {}) => ({
  kyc_status: 'in_review', verification_level: 'none', four_eyes: 'enhanced', pending_decision: null, documents: [],
  suggestion: { level: 'basic', grounds: [] }, requirements: { past_due: [], currently_due: [], expiring_soon: [] },
  transitions: { verified: ['reviewer'], rejected: ['reviewer'], action_required: ['reviewer'] }, ...about,
});
const verify = (level) => ({ choice: 'verified', level, reason: '' });

test('the choices follow the state', () => {
  assert.deepEqual(rules.choicesOf(kyc()), ['verified', 'action_required', 'rejected']);
  assert.deepEqual(rules.choicesOf(kyc({ kyc_status: 'pending', transitions: { in_review: ['reviewer'] } })), rules.choicesOf(kyc()));
  assert.deepEqual(rules.choicesOf(kyc({ kyc_status: 'verified', transitions: { expired: ['reviewer', 'system'], in_review: ['system'] } })),
    ['level', 'expired']);
  assert.deepEqual(rules.choicesOf(kyc({ pending_decision: { id: '1' } })), []);
});

test('a reason is needed for a refusal, for more documents, and for another level than the documents support', () => {
  assert.equal(rules.needsReason(kyc(), verify('basic')), false);
  assert.equal(rules.needsReason(kyc(), verify('standard')), true);
  assert.equal(rules.needsReason(kyc(), verify('enhanced')), true);
  assert.equal(rules.needsReason(kyc(), { choice: 'rejected', level: '' }), true);
  assert.equal(rules.needsReason(kyc(), { choice: 'action_required', level: '' }), true);
  assert.equal(rules.needsReason(kyc({ suggestion: { level: 'none', grounds: [] } }), verify('basic')), true);
});

test('a second person is needed as the setting says', () => {
  for (const [mode, basic, enhanced, rejected] of [['off', false, false, false], ['enhanced', false, true, false], ['always', true, true, true]]) {
    const one = kyc({ four_eyes: mode });
    assert.deepEqual([rules.needsSecondPerson(one, verify('basic')), rules.needsSecondPerson(one, verify('enhanced')),
      rules.needsSecondPerson(one, { choice: 'rejected', level: '' })], [basic, enhanced, rejected], mode);
    assert.equal(rules.needsSecondPerson(one, { choice: 'action_required', level: '' }), false);
  }
});

test('what is due is a warning only for a verification', () => {
  const due = kyc({ requirements: { past_due: ['passport'], currently_due: ['identity_document', 'enhanced_review'], expiring_soon: ['passport'] } });
  assert.deepEqual(rules.dueAtDecision(due, verify('basic')), ['passport', 'identity_document']);
  assert.deepEqual(rules.dueAtDecision(due, { choice: 'rejected' }), []);
});

test('the body names a state, a level, or both', () => {
  assert.deepEqual(rules.decisionBody({ choice: 'verified', level: 'basic', reason: ' ok ' }), { reason: 'ok', kyc_status: 'verified', verification_level: 'basic' });
  assert.deepEqual(rules.decisionBody({ choice: 'level', level: 'standard', reason: '' }), { reason: '', verification_level: 'standard' });
  assert.deepEqual(rules.decisionBody({ choice: 'rejected', level: '', reason: 'x' }), { reason: 'x', kyc_status: 'rejected' });
});

test('the neighbours of a case', () => {
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'b'), 'c');
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'b', -1), 'a');
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'c'), null);
  assert.equal(rules.neighbour(['a'], 'a', -1), null);
  assert.equal(rules.neighbour(['a', 'b'], 'gone'), 'a');
  assert.equal(rules.neighbour([], 'a'), null);
});
