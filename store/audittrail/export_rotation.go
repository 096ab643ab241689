package audittrail

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/store/sealing"
)

// ActionRotated is the action of the entry about a rotation of the master key. Its detail is an [ExportRotation].
const ActionRotated = "keys.rotated"

// ExportRotation says that exports are signed with another key from now on. The former key has signed the statement, so that
// an export that spans a rotation can be verified with the key that was known before.
type ExportRotation struct {
	Generation int    `json:"generation"`
	FormerKey  string `json:"former_export_key"`
	Key        string `json:"export_key"` // both Ed25519, base64
	Signature  string `json:"signature"`
}

// signed returns what the signature covers: these four lines, each with a line feed.
func (r ExportRotation) signed() []byte {
	return fmt.Appendf(nil, "kontor audit export key 1\n%d\n%s\n%s\n", r.Generation, r.FormerKey, r.Key)
}

// RotateExportKey returns the statement about the key of the next exports.
func RotateExportKey(present, next *sealing.Keys) ExportRotation {
	r := ExportRotation{Generation: next.Generation(), FormerKey: PublicExportKey(present), Key: PublicExportKey(next)}
	r.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(exportKey(present), r.signed()))
	return r
}

// parseRotation reads the detail of an entry about a rotation, and verifies its signature.
func parseRotation(detail string) (r ExportRotation, err error) {
	if err := json.Unmarshal([]byte(detail), &r); err != nil {
		return r, errors.New("the entry about a rotation of the keys is malformed")
	}
	former, err := base64.StdEncoding.DecodeString(r.FormerKey)
	if err != nil || len(former) != ed25519.PublicKeySize {
		return r, errors.New("the former public key is not 32 bytes in base64")
	}
	signature, err := base64.StdEncoding.DecodeString(r.Signature)
	if err != nil || !ed25519.Verify(former, r.signed(), signature) {
		return r, errors.New("the signature of the new public key is wrong")
	}
	return r, nil
}
