package audittrail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// metaHead is the row of the table meta with the signed head.
const metaHead = "audit_head"

// signHead returns the text of a head and its keyed digest.
func signHead(keys *sealing.Keys, h head) string {
	text := headText(h)
	return fmt.Sprintf("%s %x", text, keys.Sign("audit head", []byte(text)))
}

// headText returns the signed part of a head.
func headText(h head) string { return fmt.Sprintf("%d %x", h.seq, h.hash) }

const (
	selectFirstSeq = `SELECT COALESCE(MIN(seq), 1) FROM audit_entries`
	selectHash     = `SELECT hash FROM audit_entries WHERE seq = $1`
)

// verifyHead compares the newest entry with its predecessor and with the signed head. It is fast enough for a start; "kontor
// check" verifies the whole trail.
func verifyHead(ctx context.Context, q query.Querier, keys *sealing.Keys) error {
	var first int64
	if err := q.QueryRow(ctx, selectFirstSeq).Scan(&first); err != nil {
		return err
	}
	if first != 1 {
		return &Break{Seq: 1, Reason: "it is missing"}
	}
	newest, _, err := readHead(ctx, q)
	if err != nil {
		return err
	}
	if newest.seq > 0 {
		before, err := readPredecessor(ctx, q, newest.seq-1)
		if err != nil {
			return err
		}
		if _, err := verifyAfter(ctx, q, &before, 1); err != nil {
			return err
		}
	}
	return verifyEnd(ctx, q, keys, newest)
}

// readPredecessor reads the hash of an entry; the zero head precedes the first.
func readPredecessor(ctx context.Context, q query.Querier, seq int64) (head, error) {
	if seq == 0 {
		return head{}, nil
	}
	var hash string
	err := q.QueryRow(ctx, selectHash, seq).Scan(&hash)
	if errors.Is(err, engine.ErrNotFound) {
		return head{}, &Break{Seq: seq, Reason: "it is missing"}
	}
	if err != nil {
		return head{}, err
	}
	h := head{seq: seq}
	h.hash, err = parseHash(hash)
	return h, err
}

// verifyEnd compares the end of the chain with the signed head. Without keys it compares the text of the head and not its
// signature.
func verifyEnd(ctx context.Context, q query.Querier, keys *sealing.Keys, last head) error {
	var signed string
	err := q.QueryRow(ctx, engine.SelectMeta, metaHead).Scan(&signed)
	if errors.Is(err, engine.ErrNotFound) {
		return missingHead(ctx, q, last)
	}
	if err != nil {
		return err
	}
	if isSigned(keys, last, signed) {
		return nil
	}
	var end head
	var hash, signature string
	if _, err := fmt.Sscanf(signed, "%d %s %s", &end.seq, &hash, &signature); err == nil && len(hash) == 2*sha256.Size && end.seq > last.seq {
		return &Break{Seq: last.seq + 1, Reason: fmt.Sprintf("it is missing; the trail was signed up to entry %d", end.seq)}
	}
	return &Break{Seq: last.seq, Reason: "it is not the newest one that was signed"}
}

// isSigned reports whether a text is the signed head of a trail that ends with an entry.
func isSigned(keys *sealing.Keys, last head, signed string) bool {
	text := headText(last)
	digest, ok := strings.CutPrefix(signed, text+" ")
	if !ok || keys == nil {
		return ok
	}
	raw, err := hex.DecodeString(digest)
	return err == nil && keys.Verify("audit head", []byte(text), raw)
}

// missingHead returns nil only for an empty trail of an earlier version: such databases had no head.
func missingHead(ctx context.Context, q query.Querier, last head) error {
	var check string
	err := q.QueryRow(ctx, engine.SelectMeta, metaKeyCheck).Scan(&check)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if err == nil && last.seq == 0 && !strings.HasPrefix(check, boundPrefix) && !strings.HasPrefix(check, ringPrefix) {
		return nil
	}
	return &Break{Seq: last.seq, Reason: "its signed head is missing"}
}
