package continuous

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"kontor/store/engine"
	"kontor/store/sealing"
)

// Key is the passphrase of the objects.
type Key string

// KeyOf returns the key for what sealing.Keys.BackupKey returns.
func KeyOf(derived []byte) Key { return Key(base64.RawURLEncoding.EncodeToString(derived)) }

// The work factors of scrypt, which stretches passphrases, as powers of two. Ours is random, so that stretching it would only
// cost time.
const (
	workFactor    = 1
	maxWorkFactor = 10
)

// seal returns a writer that encrypts. Close completes what was written.
func (k Key) seal(out io.Writer) (io.WriteCloser, error) {
	r, err := age.NewScryptRecipient(string(k))
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(workFactor)
	return age.Encrypt(out, r)
}

// open returns a reader of what seal encrypted. It returns sealing.ErrWrongKey for another key. Everything that it returns
// before an error is authentic.
func (k Key) open(in io.Reader) (io.Reader, error) {
	i, err := age.NewScryptIdentity(string(k))
	if err != nil {
		return nil, err
	}
	i.SetMaxWorkFactor(maxWorkFactor)
	plain, err := age.Decrypt(in, i)
	var wrong *age.NoIdentityMatchError
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%w: the backup was encrypted with another one", sealing.ErrWrongKey)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return plain, nil
}
