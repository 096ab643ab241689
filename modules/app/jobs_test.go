package app_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kontor/modules/app"
	"kontor/server/servertest"
)

func TestRunJobs_GoesOnAfterErrorsAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		r := app.RunJobs(t.Context(), []app.Job{{Name: "test", Every: time.Hour, Run: func(context.Context) error {
			runs++
			switch runs {
			case 1:
				panic("once")
			case 2:
				return errors.New("twice")
			}
			return nil
		}}}, slog.New(slog.DiscardHandler))
		time.Sleep(3*time.Hour + time.Minute) // of the bubble's clock
		synctest.Wait()
		if runs != 4 {
			t.Errorf("the job ran %d times, want 4: after a moment and then every hour", runs)
		}
		r.Stop()
		time.Sleep(2 * time.Hour)
		if runs != 4 {
			t.Error("the job runs although it was stopped")
		}
	})
}

func TestJobs_RunOnAFreshBank(t *testing.T) {
	s := servertest.Start(t)
	for _, job := range s.Jobs() {
		if err := job.Run(context.Background()); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
	}
}
