package customers

import (
	"strings"
	"unicode"

	"kontor/modules/kit/types"
)

// DocumentType is what a document counts as. Only the known types count for levels.
type DocumentType string

// The types.
const (
	Passport        DocumentType = "passport"
	IdentityCard    DocumentType = "identity_card"
	ResidencePermit DocumentType = "residence_permit"
	DrivingLicence  DocumentType = "driving_licence"
	ProofOfAddress  DocumentType = "proof_of_address"
	OtherDocument   DocumentType = "other" // counts for no level
)

// typeNames are the usual names of the known types, without separators and in lower case. See [documentTypeOf].
var typeNames = map[DocumentType][]string{
	Passport: {"passport", "biometricpassport", "epassport", "passportcard", "traveldocument", "refugeetraveldocument",
		"conventiontraveldocument"},
	IdentityCard: {"identitycard", "idcard", "nationalid", "nationalidcard", "nationalidentity", "nationalidentitycard",
		"nationalidentificationcard", "identificationcard"},
	ResidencePermit: {"residencepermit", "residentpermit", "residencepermitcard", "biometricresidencepermit", "residencecard", "residentcard",
		"permanentresidencecard", "permanentresidentcard", "permanentresidencepermit"},
	DrivingLicence: {"drivinglicence", "drivinglicense", "driverlicence", "driverlicense", "driverslicence", "driverslicense"},
	ProofOfAddress: {"proofofaddress", "addressproof", "proofofresidence", "proofofresidency", "utilitybill", "bankstatement",
		"residencecertificate", "certificateofresidence"},
}

var typesByName = func() map[string]DocumentType {
	all := map[string]DocumentType{}
	for kind, names := range typeNames {
		for _, name := range names {
			all[name] = kind
		}
	}
	return all
}()

// documentTypeOf returns what a document counts as, by the type that a client gave. Separators and case do not matter:
// "ID card", "id_card" and "IdCard" are one name.
func documentTypeOf(given string) DocumentType {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, given)
	if kind, known := typesByName[letters]; known {
		return kind
	}
	return OtherDocument
}

// identifies reports whether a document of the type proves an identity: an official document with a photograph.
func (t DocumentType) identifies() bool {
	return t == Passport || t == IdentityCard || t == ResidencePermit || t == DrivingLicence
}

// typeKey returns what the types of the same document share: the known type, otherwise the given text without its case.
func typeKey(given string) string {
	if kind := documentTypeOf(given); kind != OtherDocument {
		return string(kind)
	}
	return types.Fold(given)
}
