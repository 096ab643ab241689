package files

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"kontor/store"
)

const (
	scanBatch = 20
	// rescanAfter is how long a file waits that the scanner has refused. Other files are scanned meanwhile.
	rescanAfter = 10 * time.Minute
)

const (
	selectWaiting = `
		SELECT ` + columns + ` FROM files
		WHERE status = 'checking' AND scan_after <= $1
		ORDER BY scan_after, id
		LIMIT $2`

	postponeScan = `UPDATE files SET scan_after = $2 WHERE id = $1 AND status = 'checking'`
)

// Scan has the virus scanner look at all files that wait. Without a scanner it does nothing. It ends when the scanner cannot be reached:
// the files wait for the next run. Two nodes may scan the same file; the first result counts.
func (s *Service) Scan(ctx context.Context) error {
	if s.Clamd == "" {
		return nil
	}
	for {
		found, err := store.All(ctx, s.db, scanFile, selectWaiting, s.db.Now(), scanBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, f := range found {
			if err := s.scanOne(ctx, f); err != nil {
				return err
			}
		}
	}
}

// scanOne scans a file and opens it, or destroys its content.
func (s *Service) scanOne(ctx context.Context, f StoredFile) error {
	cipher, err := s.cipher(f)
	if err != nil {
		return err
	}
	body := &reader{Service: s, ctx: ctx, cipher: cipher, chunks: chunksOf(f.Size), end: f.Size}
	found, err := scanner{s.Clamd}.scan(ctx, body.piece)
	switch {
	case errors.Is(err, errUnscannable):
		s.Log.Error("a file cannot be scanned and stays closed", "file", f.ID, "cause", err)
		return s.postpone(ctx, f)
	case err != nil:
		if now, failed := scanFile(s.db.QueryRow(ctx, selectOne, f.ID)); errors.Is(failed, store.ErrNotFound) || failed == nil && now.Status != Checking {
			return nil // it was deleted meanwhile
		}
		return err
	case found == "":
		return s.settle(ctx, f, readyStatement, "files.upload")
	}
	s.Log.Warn("a file contains malware; its content is destroyed", "file", f.ID, "malware", found)
	if err := s.settle(ctx, f, infectedStatement, "files.infected"); err != nil {
		return err
	}
	return s.purge(ctx, f.ID, f.chunks)
}

// piece returns the next chunk of the file.
func (r *reader) piece() ([]byte, error) {
	if r.next >= r.end {
		return nil, io.EOF
	}
	if err := r.fill(); err != nil {
		return nil, err
	}
	piece := make([]byte, r.ready.Len())
	_, err := r.ready.Read(piece)
	return piece, err
}

func (s *Service) postpone(ctx context.Context, f StoredFile) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, postponeScan, f.ID, store.TimeOf(tx.Now().Std().Add(rescanAfter)))
		return err
	})
}

// settle changes the state of a file that was waiting, and writes an audit entry.
func (s *Service) settle(ctx context.Context, f StoredFile, statement, action string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := scanFile(tx.QueryRow(ctx, selectOne, f.ID))
		if errors.Is(err, store.ErrNotFound) || err == nil && before.Status != Checking {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, statement, f.ID); err != nil {
			return err
		}
		after, err := scanFile(tx.QueryRow(ctx, selectOne, f.ID))
		if err != nil {
			return err
		}
		f.audit(ctx, tx, action, before.record(), after.record())
		return s.changed(ctx, tx, after, true)
	})
}

// release opens the files that wait for a scanner that the operator has removed from the settings.
func (s *Service) release(ctx context.Context) error {
	for {
		found, err := store.All(ctx, s.db, scanFile, selectWaiting, store.Time(1<<62), scanBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, f := range found {
			if err := s.settle(ctx, f, readyStatement, "files.unscanned"); err != nil {
				return err
			}
		}
	}
}

const (
	dialTime  = 5 * time.Second
	scanTime  = 2 * time.Minute // for one file
	maxAnswer = 1 << 10
)

// errScanner says that the scanner could not be reached, or has answered nonsense. The files wait.
var errScanner = errors.New("the virus scanner does not answer")

// errUnscannable says that the scanner refuses this file, for example because it is too large for its settings.
var errUnscannable = errors.New("the virus scanner refuses the file")

// scanner speaks the protocol of clamd (man clamd, INSTREAM).
type scanner struct{ address string }

// network returns the network of the address: a path is a socket of this machine.
func (s scanner) network() string {
	if strings.HasPrefix(s.address, "/") {
		return "unix"
	}
	return "tcp"
}

// scan sends a file, piece by piece, and returns the name of the malware, or "". next returns io.EOF after the last piece.
func (s scanner) scan(ctx context.Context, next func() ([]byte, error)) (found string, err error) {
	dialer := net.Dialer{Timeout: dialTime}
	connection, err := dialer.DialContext(ctx, s.network(), s.address)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errScanner, err)
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.Close() }) // it only wakes the calls below
	defer stop()
	if err := connection.SetDeadline(time.Now().Add(scanTime)); err != nil {
		return "", fmt.Errorf("%w: %w", errScanner, err)
	}
	if err := stream(connection, next); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(io.LimitReader(connection, maxAnswer)).ReadString(0)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errScanner, err)
	}
	return verdictOf(strings.TrimSuffix(answer, "\x00"))
}

// stream sends the command and the pieces, each after its length. When the scanner closes the connection early, its answer says why.
func stream(w io.Writer, next func() ([]byte, error)) error {
	if _, err := io.WriteString(w, "zINSTREAM\x00"); err != nil {
		return fmt.Errorf("%w: %w", errScanner, err)
	}
	for {
		piece, err := next()
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		size := binary.BigEndian.AppendUint32(nil, uint32(len(piece))) //nolint:gosec // a piece is a chunk
		if _, failed := w.Write(append(size, piece...)); failed != nil {
			return nil //nolint:nilerr // the answer of the scanner says why
		}
		if last || len(piece) == 0 {
			return nil
		}
	}
}

// verdictOf reads an answer: "stream: OK", "stream: NAME FOUND", or a text that ends with ERROR.
func verdictOf(answer string) (found string, err error) {
	text, _ := strings.CutPrefix(answer, "stream: ")
	switch {
	case text == "OK":
		return "", nil
	case strings.HasSuffix(text, " FOUND"):
		return strings.TrimSuffix(text, " FOUND"), nil
	case strings.HasSuffix(text, "ERROR"):
		return "", fmt.Errorf("%w: %.100q", errUnscannable, text)
	}
	return "", fmt.Errorf("%w: it has answered %.100q", errScanner, text)
}
