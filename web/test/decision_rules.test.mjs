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
  const transitions = { expired: ['reviewer', 'system'], in_review: ['system'] };
  assert.deepEqual(rules.choicesOf(kyc({ kyc_status: 'verified', transitions })), ['level', 'expired']);
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
  const modes = [['off', false, false, false], ['enhanced', false, true, false], ['always', true, true, true]];
  for (const [mode, basic, enhanced, rejected] of modes) {
    const one = kyc({ four_eyes: mode });
    assert.deepEqual([rules.needsSecondPerson(one, verify('basic')), rules.needsSecondPerson(one, verify('enhanced')),
      rules.needsSecondPerson(one, { choice: 'rejected', level: '' })], [basic, enhanced, rejected], mode);
    assert.equal(rules.needsSecondPerson(one, { choice: 'action_required', level: '' }), false);
  }
});

test('what is due is a warning only for a verification', () => {
  const requirements = { past_due: ['passport'], currently_due: ['identity_document', 'enhanced_review'], expiring_soon: ['passport'] };
  const due = kyc({ requirements });
  assert.deepEqual(rules.dueAtDecision(due, verify('basic')), ['passport', 'identity_document']);
  assert.deepEqual(rules.dueAtDecision(due, { choice: 'rejected' }), []);
});

test('the body names a state, a level, or both', () => {
  const verified = { reason: 'ok', kyc_status: 'verified', verification_level: 'basic' };
  const one = { four_eyes: 'off' };
  assert.deepEqual(rules.decisionBody(one, { choice: 'verified', level: 'basic', reason: ' ok ' }), verified);
  const level = { choice: 'level', level: 'standard', reason: '' };
  assert.deepEqual(rules.decisionBody(one, level), { reason: '', verification_level: 'standard' });
  const two = { four_eyes: 'always' };
  const rejection = { choice: 'rejected', level: '', reason: 'hit', customer_reason: ' sorry ' };
  assert.deepEqual(rules.decisionBody(two, rejection), { reason: 'hit', customer_reason: 'sorry', kyc_status: 'rejected' });
  assert.deepEqual(rules.decisionBody(one, rejection), { reason: 'hit', kyc_status: 'rejected' });
  assert.deepEqual(rules.decisionBody(one, { choice: 'rejected', level: '', reason: 'x' }), { reason: 'x', kyc_status: 'rejected' });
});

test('the neighbours of a case', () => {
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'b'), 'c');
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'b', -1), 'a');
  assert.equal(rules.neighbour(['a', 'b', 'c'], 'c'), null);
  assert.equal(rules.neighbour(['a'], 'a', -1), null);
  assert.equal(rules.neighbour(['a', 'b'], 'gone'), 'a');
  assert.equal(rules.neighbour([], 'a'), null);
});
