package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/modules/kit/recordtype"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// Proofs declares how the audit trail reads the records of this module.
func Proofs() []records.Proof { return []records.Proof{proof} }

// proof covers a persona, its users and the links that were created at it.
var proof = records.Proof{Type: access.Personas.Name, From: "personas", Key: "id", Read: readPersona, Changes: recordtype.Changes}

// auditChange runs a change of a persona and writes its audit entry, with the state of persona, users and links before and after.
func auditChange(ctx context.Context, tx *store.Tx, action, id string, change func() error) error {
	before, err := proof.Read(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return proof.Audit(ctx, tx, action, id, before)
}

// storedPersona holds the data of a persona that the API does not show with it.
type storedPersona struct {
	Version      int64      `json:"version"`
	FirstNameKey string     `json:"first_name_key"`
	LastNameKey  string     `json:"last_name_key"`
	Users        []UserLink `json:"users"`
	Links        []Link     `json:"links"`
}

// audited returns the record that audit entries of a persona digest.
func audited(p Persona, users []UserLink, links []Link) store.Record {
	return store.Record{Answer: p, Stored: storedPersona{p.Version, types.Fold(p.FirstName), types.Fold(p.LastName), users, links}}
}

const (
	selectAllUserLinks = `SELECT ` + userLinkColumns + ` FROM persona_users WHERE persona_id = $1 ORDER BY id`
	selectAllLinks     = `SELECT ` + linkColumns + ` FROM persona_links WHERE persona_id = $1 ORDER BY id`
)

// readPersona reads a persona with its users and links, and with its search keys as they are stored.
func readPersona(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	p, keys, err := personas.Read(ctx, q, id)
	if err != nil {
		return store.Record{}, err
	}
	s := storedPersona{Version: p.Version, FirstNameKey: keys[0], LastNameKey: keys[1]}
	if s.Users, err = store.All(ctx, q, scanUserLink, selectAllUserLinks, id); err != nil {
		return store.Record{}, fmt.Errorf("read users of a persona: %w", err)
	}
	if s.Links, err = store.All(ctx, q, scanLink, selectAllLinks, id); err != nil {
		return store.Record{}, fmt.Errorf("read links of a persona: %w", err)
	}
	return store.Record{Answer: p, Stored: s}, nil
}
