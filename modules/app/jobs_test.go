package app_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kontor/modules/app"
	"kontor/server/metrics"
	"kontor/server/servertest"
)

func TestRunJobs_ContinuesAfterErrorsAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		jobs := []app.Job{{Name: "test", Every: time.Hour, Run: func(context.Context) error {
			runs++
			switch runs {
			case 1:
				panic("once")
			case 2:
				return errors.New("twice")
			}
			return nil
		}}}
		counted := app.NewJobRuns(jobs)
		r := app.RunJobs(t.Context(), jobs, func() bool { return true }, counted, slog.New(slog.DiscardHandler))
		time.Sleep(3*time.Hour + time.Minute) // of the bubble's clock
		synctest.Wait()
		if runs != 4 {
			t.Errorf("the job ran %d times, want 4: shortly after the start and then every hour", runs)
		}
		var written strings.Builder
		if err := metrics.Write(&written, counted.Add); err != nil {
			t.Error(err)
		}
		for _, want := range []string{`{job="test",outcome="ok"} 2`, `{job="test",outcome="failed"} 2`} {
			if !strings.Contains(written.String(), want) {
				t.Errorf("the metrics do not contain %s:\n%s", want, &written)
			}
		}
		r.Stop()
		time.Sleep(2 * time.Hour)
		if runs != 4 {
			t.Error("the job ran after Stop")
		}
	})
}

func TestRunJobs_TheLeaderAloneRunsJobsOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		var own, shared atomic.Int64
		jobs := []app.Job{
			{Name: "own", Every: time.Hour, Run: func(context.Context) error { own.Add(1); return nil }},
			{Name: "shared", Every: time.Hour, Scope: app.OneNode, Run: func(context.Context) error { shared.Add(1); return nil }},
		}
		r := app.RunJobs(t.Context(), jobs, leads.Load, app.NewJobRuns(jobs), slog.New(slog.DiscardHandler))
		defer r.Stop()
		time.Sleep(90 * time.Minute) // of the bubble's clock
		synctest.Wait()
		if own.Load() != 2 || shared.Load() != 0 {
			t.Errorf("without the lead: %d runs of every node, %d of one node, want 2 and 0", own.Load(), shared.Load())
		}
		leads.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if shared.Load() != 1 {
			t.Errorf("two seconds after it took the lead: %d runs, want 1", shared.Load())
		}
		time.Sleep(time.Hour)
		leads.Store(false)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if shared.Load() != 2 {
			t.Errorf("after it lost the lead: %d runs, want 2", shared.Load())
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
