package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/store"
	"kontor/store/audittrail"
)

const (
	selectStored = `SELECT ` + columns + ` FROM files WHERE status IN ('checking', 'ready') AND id > $1 ORDER BY id LIMIT $2`

	selectLengths = `SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(content)), 0) AS BIGINT), COALESCE(MAX(number), -1) FROM file_chunks WHERE file_id = $1`

	// Chunks of files without a key, which no purge will find.
	selectForgotten = `
		SELECT f.id FROM files f
		WHERE f.key_sealed = '' AND f.chunks = 0 AND EXISTS (SELECT 1 FROM file_chunks c WHERE c.file_id = f.id)
		LIMIT 1`
)

const checkBatch = 200

// Check compares the content of all files with their records, and returns the number of files: the key of each file opens, and no chunk
// is missing or has another length. With content it also decrypts every chunk and compares the digest, which reads the whole content. The
// error is *records.Breaks with every file that differs.
func Check(ctx context.Context, e *audittrail.Evidence, content bool) (checked int64, err error) {
	if e.Schema < migration {
		return 0, nil
	}
	var breaks records.Breaks
	for last := ""; ; {
		found, err := store.All(ctx, e, scanFile, selectStored, last, checkBatch)
		if err != nil {
			return checked, fmt.Errorf("read files: %w", err)
		}
		for _, f := range found {
			if err := breaks.Add(checkFile(ctx, e, f, content)); err != nil {
				return checked, err
			}
			checked++
			last = f.ID
		}
		if len(found) < checkBatch {
			if err := breaks.Add(checkForgotten(ctx, e)); err != nil {
				return checked, err
			}
			return checked, breaks.Err()
		}
	}
}

func checkForgotten(ctx context.Context, e *audittrail.Evidence) error {
	var id string
	err := e.QueryRow(ctx, selectForgotten).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return &records.Break{Type: keyTable, ID: id, Reason: "chunks remain of a file that was purged"}
}

func checkFile(ctx context.Context, e *audittrail.Evidence, f StoredFile, content bool) error {
	broken := func(reason string) error {
		return &records.Break{Type: auditTypes[f.RecordType], ID: f.ID, Reason: reason}
	}
	var count, bytes, largest int64
	if err := e.QueryRow(ctx, selectLengths, f.ID).Scan(&count, &bytes, &largest); err != nil {
		return fmt.Errorf("read the chunks of file %s: %w", f.ID, err)
	}
	want := chunksOf(f.Size)
	if count != want || largest != want-1 || bytes != f.Size+want*tagBytes {
		return broken(fmt.Sprintf("it has %d chunks of %d bytes, and should have %d of %d", count, bytes, want, f.Size+want*tagBytes))
	}
	key, err := e.Unseal(keyTable, keyColumn, f.ID, f.sealed)
	if err != nil {
		return broken("its key cannot be opened")
	}
	if !content {
		return nil
	}
	cipher, err := newCipher(f.ID, key)
	if err != nil {
		return broken("its key is damaged")
	}
	sum := sha256.New()
	for number := range want {
		var sealed []byte
		if err := e.QueryRow(ctx, selectChunk, f.ID, number).Scan(&sealed); err != nil {
			return fmt.Errorf("read chunk %d of file %s: %w", number, f.ID, err)
		}
		plain, err := cipher.open(sealed, number, number == want-1)
		if err != nil {
			return broken(fmt.Sprintf("chunk %d was changed or belongs to another file", number))
		}
		sum.Write(plain)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return broken("its content differs from its digest")
	}
	return nil
}
