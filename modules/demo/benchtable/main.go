// Command benchtable runs the benchmarks of the figures that Kontor is judged by, and prints them in one table: what each should
// reach, what it was before, and what it is now. It takes some minutes. Run it with "make bench" on a machine that does nothing else.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	dir := flag.String("data.dir", "", "directory with a data set of \"make dataset\"; without it a small one is made")
	only := flag.String("only", "", "measure only the rows whose name contains this text")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed := measure(ctx, *dir, *only, os.Stdout)
	stop()
	if failed {
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// measure runs the benchmarks and writes the table. It reports whether a figure is missing.
func measure(ctx context.Context, dir, only string, w io.Writer) (missing bool) {
	began := time.Now()
	wanted := slices.Clone(rows)
	wanted = slices.DeleteFunc(wanted, func(r row) bool { return !strings.Contains(r.name, only) })
	found := map[string]float64{}
	for _, run := range runs(wanted) {
		if err := run.measure(ctx, found); err != nil {
			slog.Error("benchmarks failed", "package", run.pkg, "benchmarks", run.bench, "err", err)
		}
	}
	if slices.ContainsFunc(wanted, func(r row) bool { return r.pkg == lists }) {
		if err := measureLists(ctx, dir, found); err != nil {
			slog.Error("lists were not measured", "err", err)
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\tunit\taim\tbefore¹\tnow\t")
	for _, r := range wanted {
		value, ok := found[r.pkg+" "+r.bench+" "+r.metric]
		now, verdict := "not measured", ""
		if ok {
			value *= r.scale()
			now, verdict = number(value), r.verdict(value)
		}
		missing = missing || !ok
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.unit, r.aimText(), r.before, now, verdict)
	}
	if err := table.Flush(); err != nil {
		slog.Error("the table was not written", "err", err)
	}
	fmt.Fprintf(w, "\nNow: %s, %d processors, %s; measured in %s.\n", processor(), runtime.NumCPU(), runtime.Version(), time.Since(began).Round(time.Second))
	fmt.Fprintln(w, "¹ On two shared cores, before the work on speed in November 2026. Compare ratios; other figures depend on the machine.")
	fmt.Fprintln(w, "² With 5,000 streams.")
	fmt.Fprintln(w, "³ Ten events without a pause. Each user has a row of their own. The clients are another process on the same processors.")
	return missing
}

// run is one call of "go test".
type run struct{ pkg, bench, times string }

// runs returns the calls for the rows, each once.
func runs(wanted []row) (all []run) {
	for _, r := range wanted {
		if r.pkg == lists {
			continue
		}
		name, sub, _ := strings.Cut(r.bench, "/")
		bench := "^" + name + "$"
		if first, _, several := strings.Cut(sub, "/"); several {
			bench += "/^" + first + "$"
		}
		one := run{r.pkg, bench, r.times}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func (r run) measure(ctx context.Context, found map[string]float64) error {
	fmt.Fprintln(os.Stderr, "==>", r.pkg, r.bench)
	out, err := command(ctx, "go", "test", r.pkg, "-run=^$", "-bench="+r.bench, "-benchtime="+r.times, "-timeout=20m").Output()
	for name, value := range metrics(string(out)) {
		found[r.pkg+" "+name] = value
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // the commands are those of the table
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "KONTOR_TEST=full") // benchmarks of the program belong to the full tier
	return c
}

// result matches a line of a benchmark's output.
var result = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// metrics returns the figures in the output of benchmarks, by name and unit.
func metrics(output string) map[string]float64 {
	found := map[string]float64{}
	for _, line := range result.FindAllStringSubmatch(output, -1) {
		words := strings.Fields(line[2])
		for i := 0; i+1 < len(words); i += 2 {
			if value, err := strconv.ParseFloat(words[i], 64); err == nil {
				found["Benchmark"+line[1]+" "+words[i+1]] = value
			}
		}
	}
	return found
}

// number returns a figure with three digits.
func number(value float64) string {
	switch {
	case value >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 3, 64)
}

// processor returns the name of the processor, where the system shows it.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // elsewhere there is none
	if _, after, found := bytes.Cut(text, []byte("model name")); found {
		name, _, _ := bytes.Cut(after, []byte("\n"))
		return strings.TrimLeft(string(name), " \t:")
	}
	return runtime.GOARCH
}
