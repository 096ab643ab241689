package customers

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "customers", Holds: "names, addresses, date of birth, nationality and metadata of a customer", Sections: []string{"customer"}},
		{Name: "customer_keys", Holds: "the data key of a customer", Unexported: "A key must not leave the system."},
		{Name: "customer_identities", Holds: "keyed hashes of former names and dates of birth", Unexported: "Digests say nothing to their subject."},
		{Name: "customer_addresses", Holds: "keyed hashes of former e-mail addresses and phone numbers", Unexported: "Digests say nothing to their subject."},
		{Name: "customer_name_keys", Holds: "the consonants of names, and dates of birth, by which duplicates are found", Unexported: "They follow from the names and the date of birth, which are exported."},
		{Name: "customer_distinctions", Why: "It holds ids: which customers are two persons."},
		{Name: "kyc_documents", Holds: "types, sealed numbers, countries and expiry dates of documents", Sections: []string{"documents"}},
		{Name: "kyc_changes", Holds: "the history of the verification with its reasons and sealed changes", Sections: []string{"verification_history"}},
		{Name: "kyc_decisions", Holds: "decisions that needed a second person, with their reasons", Sections: []string{"decisions"}},
		{Name: "kyc_decision_exclusions", Holds: "the ids of users who are related to a customer or to a proposer, deleted with the customer", Unexported: "It says who is related to whom, which is data on others."},
		{Name: "kyc_cases", Holds: "open verifications: country, level of the documents, and the reviewer who works on it", Sections: []string{"case"}},
	}
}

const (
	selectAllChanges = `
		SELECT ` + changeColumns + ` FROM kyc_changes
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
			personal.Rows(selectAllDecisions, scanDecision, func(d PendingDecision) string { return d.ID }), nil),
		personal.Answer(personal.About{Name: "verification_history", Kind: personal.Customer, Endpoint: kyc},
			func(ctx context.Context, of personal.Subject) ([]Change, error) {
				k, err := ask(ctx, of)
				return k.History, err
			}, s.readHistory, nil),
		personal.Answer(personal.About{Name: "case", Kind: personal.Customer, Endpoint: "GET /v1/kyc/cases"},
			func(ctx context.Context, of personal.Subject) ([]Case, error) {
				one, err := list.Parse(map[string][]string{"search.customer_id": {of.ID}})
				if err != nil {
					return nil, err
				}
				page, err := s.Cases(ctx, ListInput{Query: one})
				return page.Data.Rows, err
			},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]Case, error) {
				return store.All(ctx, q, scanCase, selectCaseOf, of.ID)
			}), nil),
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
			err = s.complete(dataKey, of.ID, &h)
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
			country = '', metadata = '{}', language = '', external_id = '', email_proven = FALSE, phone_proven = FALSE, identity_proven = FALSE, updated_at = $2, updated_by = $3, version = version + 1, erased_at = $2
		WHERE id = $1 AND erased_at IS NULL`

	deleteIdentities = `DELETE FROM customer_identities WHERE customer_id = $1`

	deleteFormerAddresses = `DELETE FROM customer_addresses WHERE customer_id = $1`

	selectUnerasedDocuments = `
		SELECT id FROM kyc_documents
		WHERE customer_id = $1 AND id > $2 AND (number_sealed <> '' OR number_key NOT LIKE 'erased %') ORDER BY id LIMIT $3`

	eraseDocument = `
		UPDATE kyc_documents SET
			number_sealed = '', number_key = 'erased ' || id, given_type = '', country = '', country_key = '', expiry_date = NULL, warned_at = NULL,
			updated_at = $2, version = version + 1
		WHERE id = $1`

	selectUnerasedChanges = `
		SELECT id FROM kyc_changes
		WHERE customer_id = $1 AND id > $2 AND (reason <> '' OR changes_sealed <> '') ORDER BY id LIMIT $3`

	eraseChange = `UPDATE kyc_changes SET reason = '', changes_sealed = '' WHERE id = $1`

	selectUnerasedDecisions = `
		SELECT id FROM kyc_decisions
		WHERE customer_id = $1 AND id > $2 AND (reason <> '' OR customer_reason <> '' OR closing_reason <> '' OR evidence_key <> '' OR documents <> '' OR state = 'pending') ORDER BY id LIMIT $3`

	eraseDecision = `
		UPDATE kyc_decisions SET reason = '', customer_reason = '', closing_reason = '', evidence_key = '', documents = '', state = CASE WHEN state = 'pending' THEN 'void' ELSE state END
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
			return documentProof.ChangeRow(ctx, tx, personal.Action, id, eraseDocument, id, tx.Now())
		}),
		personal.EachID(selectUnerasedChanges, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return changeProof.ChangeRow(ctx, tx, personal.Action, id, eraseChange, id)
		}),
		personal.EachID(selectUnerasedDecisions, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return decisionProof.Change(ctx, tx, personal.Action, id, func() error { return tx.RunEach(ctx, id, deleteExclusions, eraseDecision) })
		}))
}

func (s *Service) eraseRecord(ctx context.Context, tx *store.Tx, id string) error {
	before, err := table.GetUnchecked(ctx, tx, id)
	if err != nil || before.Erased() {
		return err
	}
	deletions := []string{deleteKeyStatement, deleteIdentities, deleteFormerAddresses, eraseCase, deleteNameKeys, deleteDistinctions}
	if err := tx.RunEach(ctx, id, deletions...); err != nil {
		return err
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

const selectLastVerified = `SELECT MAX(verified_at) FROM customer_verifications WHERE customer_id = $1`

// LastVerified returns when the identity of a customer was last verified, or nil if it never was. The bank has, or had, a
// business relationship with a verified customer. A request cannot make it earlier than it was recorded.
func (s *Service) LastVerified(ctx context.Context, q store.Querier, id string) (at *store.Time, err error) {
	err = q.QueryRow(ctx, selectLastVerified, id).Scan(&at)
	return at, err
}
