package qrbill_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

func TestClose_CancelsRunningReads(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 3, Wait: time.Hour, Limits: qrbill.Limits{Time: time.Hour, Page: time.Minute}})
	file := load(t, "pair-0.pdf")
	running := make(chan struct{}, 1)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for {
				_, err := read(reader, file, qrbill.Options{})
				switch {
				case errors.Is(err, qrbill.ErrBusy):
					return
				case err != nil:
					t.Errorf("got %v", err)
					return
				}
				select {
				case running <- struct{}{}:
				default:
				}
			}
		})
	}
	testenv.Wait(t, "a file to be read", func() bool { return len(running) > 0 })
	reader.Close(t.Context())
	group.Wait()
	if _, err := read(reader, load(t, "png-150-b42-01.png"), qrbill.Options{}); !errors.Is(err, qrbill.ErrBusy) {
		t.Errorf("after Close: got %v", err)
	}
}

func TestClose_EndsAnEndlessPage(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 1, Limits: qrbill.Limits{Page: time.Hour, Time: time.Hour}})
	if _, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{}); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := read(reader, nested(), qrbill.Options{})
		answer <- err
	}()
	reader.Close(t.Context())
	if err := <-answer; !errors.Is(err, qrbill.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

// The context of Close has ended already.
func TestClose_WithoutTimeDuringAnEndlessPage(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 1, Limits: qrbill.Limits{Page: 500 * time.Millisecond}})
	if _, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{}); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	answer := make(chan error, 1)
	go func() {
		_, err := read(reader, nested(), qrbill.Options{})
		answer <- err
	}()
	reader.Close(ended)
	if err := <-answer; !errors.Is(err, qrbill.ErrBusy) && qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("got %v", err)
	}
}
