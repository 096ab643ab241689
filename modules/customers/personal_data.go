package customers

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "customers", Holds: "names, addresses, date of birth, nationality and metadata of a customer"},
		{Name: "customer_keys", Holds: "the data key of a customer"},
		{Name: "customer_identities", Holds: "keyed hashes of former names and dates of birth"},
		{Name: "customer_addresses", Holds: "keyed hashes of former e-mail addresses and phone numbers"},
		{Name: "kyc_documents", Holds: "types, sealed numbers, countries and expiry dates of documents"},
		{Name: "kyc_changes", Holds: "the history of the verification with its reasons and sealed changes"},
		{Name: "kyc_decisions", Holds: "decisions that needed a second person, with their reasons"},
		{Name: "kyc_decision_exclusions", Holds: "the ids of users who are related to a customer or to a proposer, deleted with the customer"},
		{Name: "kyc_cases", Holds: "open verifications: country, level of the documents, and the reviewer who works on it"},
	}
}

const (
	selectAllChanges = `
		SELECT id, from_status, to_status, verification_level, reason, changed_at, changed_by, changes_sealed FROM kyc_changes
		WHERE customer_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectAllDecisions = `SELECT ` + decisionColumns + ` FROM kyc_decisions WHERE customer_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// PersonalSections declares the customer, and the documents, decisions and history as [Service.GetKYC] returns them to the reader:
// it masks document numbers, and only reviewers get decisions and changes of the identity.
func (s *Service) PersonalSections() []personal.Section {
	const kyc = "GET /v1/customers/{id}/kyc"
	ask := func(ctx context.Context, of personal.Subject) (KYC, error) { return s.GetKYC(ctx, OneInput{ID: of.ID}) }
	return []personal.Section{
		personal.Records(personal.About{Name: "customer", Kind: personal.Customer, Endpoint: "GET /v1/customers/{id}"},
			personal.Of[Customer]{Table: table, All: access.Read, Condition: "customers.id = $2"}),
		personal.Answer(personal.About{Name: "documents", Kind: personal.Customer, Endpoint: kyc},
			func(ctx context.Context, of personal.Subject) ([]Document, error) {
				k, err := ask(ctx, of)
				return k.Documents, err
			},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]Document, error) {
				return s.documents(ctx, q, of.ID, types.DateOf(q.Now().Std()))
			}), nil),
		personal.Answer(personal.About{Name: "decisions", Kind: personal.Customer, Endpoint: kyc},
			func(ctx context.Context, of personal.Subject) ([]PendingDecision, error) {
				k, err := ask(ctx, of)
				if k.PendingDecision != nil {
					k.Decisions = append([]PendingDecision{*k.PendingDecision}, k.Decisions...)
				}
				return k.Decisions, err
			},
			personal.Query(selectAllDecisions, func(row store.Scanner) (PendingDecision, string, error) {
				d, err := scanDecision(row)
				return d, d.ID, err
			}), nil),
		personal.Answer(personal.About{Name: "verification_history", Kind: personal.Customer, Endpoint: kyc},
			func(ctx context.Context, of personal.Subject) ([]Change, error) {
				k, err := ask(ctx, of)
				return k.History, err
			}, s.readHistory, nil),
	}
}

// readHistory reads entries of the history with the changes of the identity.
func (s *Service) readHistory(ctx context.Context, q store.Querier, of personal.Subject, after string) ([]personal.Keyed[Change], bool, error) {
	dataKey, err := s.readKey(ctx, q, of.ID)
	if err != nil {
		return nil, false, err
	}
	return personal.Query(selectAllChanges, func(row store.Scanner) (Change, string, error) {
		h, err := scanChange(row)
		if err == nil {
			h.Changes, err = s.unseal(dataKey, of.ID, h.id, h.sealed)
		}
		return h, h.id, err
	})(ctx, q, of, after)
}

const (
	// An e-mail address is required; this one belongs to no domain (RFC 2606).
	eraseCustomer = `
		UPDATE customers SET
			first_name = '', first_name_key = '', first_name_order = '', last_name = '', last_name_key = '', last_name_order = '',
			email = 'erased@erased.invalid', email_key = 'erased@erased.invalid', phone = NULL, date_of_birth = NULL,
			nationality = NULL, has_address = FALSE, street = '', city = '', city_key = '', postal_code = '',
			country = '', metadata = '{}', language = '', updated_at = $2, updated_by = $3, version = version + 1, erased_at = $2
		WHERE id = $1 AND erased_at IS NULL`

	deleteIdentities = `DELETE FROM customer_identities WHERE customer_id = $1`

	deleteFormerAddresses = `DELETE FROM customer_addresses WHERE customer_id = $1`

	selectUnerasedDocuments = `
		SELECT id FROM kyc_documents
		WHERE customer_id = $1 AND id > $2 AND (number_sealed <> '' OR number_key NOT LIKE 'erased %') ORDER BY id LIMIT $3`

	eraseDocument = `
		UPDATE kyc_documents SET
			number_sealed = '', number_key = 'erased ' || id, country = '', country_key = '', expiry_date = NULL, warned_at = NULL,
			updated_at = $2, version = version + 1
		WHERE id = $1`

	selectUnerasedChanges = `
		SELECT id FROM kyc_changes
		WHERE customer_id = $1 AND id > $2 AND (reason <> '' OR changes_sealed <> '') ORDER BY id LIMIT $3`

	eraseChange = `UPDATE kyc_changes SET reason = '', changes_sealed = '' WHERE id = $1`

	selectUnerasedDecisions = `
		SELECT id FROM kyc_decisions
		WHERE customer_id = $1 AND id > $2 AND (reason <> '' OR closing_reason <> '' OR documents <> '' OR state = 'pending') ORDER BY id LIMIT $3`

	eraseDecision = `
		UPDATE kyc_decisions SET reason = '', closing_reason = '', documents = '', state = CASE WHEN state = 'pending' THEN 'void' ELSE state END
		WHERE id = $1`

	eraseCase = `DELETE FROM kyc_cases WHERE customer_id = $1`
)

// ErasePerson erases a customer: first the record and the key of all sealed values, then documents and history.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.Customer {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.Once(func(ctx context.Context, tx *store.Tx) error { return s.eraseRecord(ctx, tx, subject.ID) }),
		personal.EachID(selectUnerasedDocuments, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return eraseProven(ctx, tx, documentProof, id, eraseDocument, id, tx.Now())
		}),
		personal.EachID(selectUnerasedChanges, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return eraseProven(ctx, tx, changeProof, id, eraseChange, id)
		}),
		personal.EachID(selectUnerasedDecisions, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return s.eraseDecision(ctx, tx, id)
		}))
}

// eraseProven runs an update that erases a record, and writes its audit entry.
func eraseProven(ctx context.Context, tx *store.Tx, proof records.Proof, id, update string, args ...any) error {
	was, err := proof.Read(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, update, args...); err != nil {
		return err
	}
	return proof.Audit(ctx, tx, personal.Action, id, was)
}

// eraseDecision erases the texts of a decision, and who was excluded from it.
func (s *Service) eraseDecision(ctx context.Context, tx *store.Tx, id string) error {
	was, err := readDecision(ctx, tx, id)
	if err != nil {
		return err
	}
	for _, statement := range []string{deleteExclusions, eraseDecision} {
		if _, err := tx.Exec(ctx, statement, id); err != nil {
			return err
		}
	}
	return decisionProof.Audit(ctx, tx, personal.Action, id, was)
}

func (s *Service) eraseRecord(ctx context.Context, tx *store.Tx, id string) error {
	before, err := table.GetUnchecked(ctx, tx, id)
	if err != nil || before.Erased() {
		return err
	}
	for _, statement := range []string{deleteKeyStatement, deleteIdentities, deleteFormerAddresses, eraseCase} {
		if _, err := tx.Exec(ctx, statement, id); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, eraseCustomer, id, tx.Now(), personal.Actor(ctx)); err != nil {
		return err
	}
	after, err := table.GetUnchecked(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := s.quota.Count(ctx, tx, before.createdBy, 0, after.weight()-before.weight()); err != nil {
		return err
	}
	table.Audit(ctx, tx, personal.Action, id, audited(before), audited(after))
	return nil
}

// selectLastVerified takes the latest evidence: the time that a reviewer stated, when that was recorded, and when the customer was.
const selectLastVerified = `
	SELECT MAX(at) FROM (
		SELECT verified_at AS at FROM customers WHERE id = $1
		UNION ALL
		SELECT MAX(changed_at) FROM kyc_changes WHERE customer_id = $1 AND to_status = 'verified'
		UNION ALL
		SELECT MAX(closed_at) FROM kyc_decisions WHERE customer_id = $1 AND state = 'confirmed' AND kyc_status = 'verified'
		UNION ALL
		SELECT created_at FROM customers c WHERE id = $1 AND (kyc_status IN ('verified', 'expired') OR verified_at IS NOT NULL
			OR EXISTS (SELECT 1 FROM kyc_changes k WHERE k.customer_id = c.id AND k.to_status = 'verified'))
	) AS evidence`

// LastVerified returns when the identity of a customer was last verified, or nil if it never was. The bank has, or had, a
// business relationship with a verified customer. A request cannot make it earlier than it was recorded.
func (s *Service) LastVerified(ctx context.Context, q store.Querier, id string) (at *store.Time, err error) {
	err = q.QueryRow(ctx, selectLastVerified, id).Scan(&at)
	return at, err
}
