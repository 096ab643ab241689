package app_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kontor/modules/app"
	"kontor/server/servertest"
)

func TestRunJobs_ContinuesAfterErrorsAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		counted := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "runs"}, []string{"job", "outcome"})
		r := app.RunJobs(t.Context(), []app.Job{{Name: "test", Every: time.Hour, Run: func(context.Context) error {
			runs++
			switch runs {
			case 1:
				panic("once")
			case 2:
				return errors.New("twice")
			}
			return nil
		}}}, counted, slog.New(slog.DiscardHandler))
		time.Sleep(3*time.Hour + time.Minute) // of the bubble's clock
		synctest.Wait()
		if runs != 4 {
			t.Errorf("the job ran %d times, want 4: shortly after the start and then every hour", runs)
		}
		if ok, failed := testutil.ToFloat64(counted.WithLabelValues("test", "ok")), testutil.ToFloat64(counted.WithLabelValues("test", "failed")); ok != 2 || failed != 2 {
			t.Errorf("%v runs are counted as successful and %v as failed, want 2 and 2", ok, failed)
		}
		r.Stop()
		time.Sleep(2 * time.Hour)
		if runs != 4 {
			t.Error("the job ran after Stop")
		}
	})
}

func TestJobs_RunOnAnEmptyDatabase(t *testing.T) {
	s := servertest.Start(t)
	for _, job := range s.Jobs() {
		if err := job.Run(context.Background()); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
	}
}
