package records

import (
	"encoding/hex"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
	"kontor/store"
)

// Marks are keyed digests of what identifies a person: present and former names and addresses. Modules keep the digests of former
// ones, so that a change does not hide that two records belong to one person.
type Marks struct {
	Names     []string
	Addresses []string // e-mail addresses and phone numbers
}

const (
	namePurpose    = "customer name"
	birthPurpose   = "customer birth"
	addressPurpose = "person address"
)

// NameMark returns the digest of a person's names to store, by [types.PersonKey].
func NameMark(db *store.DB, names ...string) string {
	return mark(db, namePurpose, types.PersonKey(names...))
}

// NameMarks returns the digests that a stored one of the names may have: those of the present key and of earlier ones.
func NameMarks(db *store.DB, names ...string) []string {
	return marks(db, namePurpose, types.PersonKey(names...))
}

// BirthMark returns the digest of a date of birth to store; empty for an unknown date.
func BirthMark(db *store.DB, date string) string {
	if date == "" {
		return ""
	}
	return mark(db, birthPurpose, date)
}

// BirthMarks returns the digests of a date of birth under the keys of [NameMarks], in their order. All are empty for an unknown date.
func BirthMarks(db *store.DB, date string) []string {
	all := marks(db, birthPurpose, date)
	if date == "" {
		clear(all)
	}
	return all
}

// AddressMark returns the digest of an e-mail address or phone number to store.
func AddressMark(db *store.DB, address string) string {
	return mark(db, addressPurpose, addressKey(address))
}

// AddressMarks returns the digests that a stored one of an address may have.
func AddressMarks(db *store.DB, address string) []string {
	return marks(db, addressPurpose, addressKey(address))
}

// addressKey returns the same key for all ways to write an address.
func addressKey(text string) string {
	if email, err := types.ParseEmail(norm.NFKC.String(text)); err == nil && email != "" {
		return email.LookAlikeKey()
	}
	if phone, err := types.ParsePhone(text); err == nil && phone.String() != "" {
		return phone.String()
	}
	return types.Fold(text)
}

func mark(db *store.DB, purpose, text string) string {
	return hex.EncodeToString(db.Keyed(purpose, []byte(text)))
}

func marks(db *store.DB, purpose, text string) []string {
	all := []string{mark(db, purpose, text)}
	for _, older := range db.KeyedOlder(purpose, []byte(text)) {
		all = append(all, hex.EncodeToString(older))
	}
	return all
}
