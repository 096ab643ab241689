package profile_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"kontor/modules/identity/profile"
	"kontor/server/apierr"
)

func TestDecodeLimit_RejectsAFlood(t *testing.T) {
	const pixels = 1000
	s := profile.NewForRendering(pixels)
	release, err := s.Acquire(t.Context(), pixels)
	if err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	refused := make(chan error, 40)
	for range cap(refused) {
		wait.Go(func() {
			_, err := s.Acquire(patient, 1)
			refused <- err
		})
	}
	const queue = 16
	for range cap(refused) - queue - (runtime.GOMAXPROCS(0) - 1) {
		if err := <-refused; apierr.Of(err).Kind != apierr.Unavailable || apierr.Of(err).Retry == 0 {
			t.Errorf("got %v, want apierr.Unavailable", err)
		}
	}
	cancel() // those who wait give up
	wait.Wait()
	release()
	if release, err = s.Acquire(t.Context(), 5*pixels); err != nil {
		t.Fatalf("after the flood: %v", err)
	}
	release()
}
