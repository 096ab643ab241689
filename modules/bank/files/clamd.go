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
)

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
