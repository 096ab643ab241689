// Command benchtable runs the benchmarks of the figures that Kontor is judged by, and prints them in one table: what each should
// reach, what it was before, and what it is now. It takes some minutes. Run it with "make bench" on a machine that does nothing else.
//
// With the address of a running server it measures only the lists of this one: "make bench-lists".
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	var m measurement
	dir := flag.String("data.dir", "", "directory with a data set of \"make dataset\"; without it a small one is made")
	flag.StringVar(&m.server, "url", "", "address of a running server: measure its lists, instead of the table")
	flag.StringVar(&m.user, "user", "admin@kontor.localhost", "who signs in")
	flag.StringVar(&m.password, "password", "of a data set, not a bank", "their password")
	flag.IntVar(&m.pid, "pid", 0, "process of the server on this machine: measure its processor time, which depends less on other load")
	flag.BoolVar(&m.combinations, "combinations", false, "measure two of sort, search, distinct, text and place at once")
	flag.IntVar(&m.step, "step", 1, "measure each nth of these combinations")
	flag.StringVar(&m.only, "only", "", "measure only the list at this path, or only the rows whose name contains this text")
	flag.BoolVar(&m.all, "all", false, "print all requests as they are measured")
	flag.DurationVar(&m.slow, "slow", 300*time.Millisecond, "print requests that take longer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed := false
	if m.server == "" {
		failed = measure(ctx, *dir, m, os.Stdout)
	} else if err := m.run(ctx, os.Stdout); err != nil {
		slog.Error("not measured", "err", err)
		failed = true
	}
	stop()
	if failed {
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// measure runs the benchmarks and writes the table. It reports whether a figure is missing.
func measure(ctx context.Context, dir string, m measurement, w io.Writer) (missing bool) {
	began := time.Now()
	wanted := slices.Clone(rows)
	wanted = slices.DeleteFunc(wanted, func(r row) bool { return !strings.Contains(r.name, m.only) })
	found := map[string]float64{}
	for _, run := range runs(wanted) {
		if err := run.measure(ctx, found); err != nil {
			slog.Error("benchmarks failed", "package", run.pkg, "benchmarks", run.bench, "err", err)
		}
	}
	if slices.ContainsFunc(wanted, func(r row) bool { return r.pkg == lists }) {
		if err := m.ofDataSet(ctx, dir, found); err != nil {
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

// row is a line of the table.
type row struct {
	name, unit string
	// aim is what the figure should reach: at least, or with most at most. Zero is no aim.
	aim  float64
	most bool
	// before is the figure before the work on speed in November 2026.
	before string

	pkg, bench, metric string
	times              string  // of the benchmark's loop, as for "go test -benchtime"
	factor             float64 // from the metric to the unit; 0 is 1
}

// lists is the package of the row about lists at size, which is no benchmark of "go test".
const lists = "lists"

const (
	lifecycle     = "./modules/commands/systemtest/lifecycle"
	customers     = "./modules/bank/customers"
	notifications = "./modules/reach/notifications"
	besideWrites  = "BenchmarkListBesideWrites/100000/"
)

var rows = []row{
	{"GET by id", "of a bare Fiber handler", 0.60, false, "0.353", customers, "BenchmarkGet", "ratio", "11x", 0},
	{"GET by id", "requests/s", 0, false, "28196", customers, "BenchmarkGet", "req/s", "11x", 0},
	{"list of 10 of 100,000", "of a bare Fiber handler", 0.25, false, "0.148", customers, "BenchmarkList/100000", "ratio", "11x", 0},
	{"list of 10 of 100,000", "requests/s", 0, false, "16896", customers, "BenchmarkList/100000", "req/s", "11x", 0},
	{"list beside 200 writes/s, all", "times the CPU of quiet", 1.3, true, "13 to 20", customers, besideWrites + "all", "times", "11x", 0},
	{"list beside 200 writes/s, status", "times the CPU of quiet", 1.3, true, "", customers, besideWrites + "status", "times", "11x", 0},
	{"list beside 200 writes/s, pattern", "times the CPU of quiet", 1.3, true, "", customers, besideWrites + "name", "times", "11x", 0},
	{"durable create", "of a bare Fiber handler", 0.12, false, "0.088", customers, "BenchmarkCreate", "ratio", "11x", 0},
	{"durable create", "requests/s", 0, false, "10316", customers, "BenchmarkCreate", "req/s", "11x", 0},
	{"durable create, one connection", "µs of CPU", 250, true, "543", lifecycle, "BenchmarkLoneCreate/1", "cpu-us/create", "3x", 0},
	{"sign-in", "sign-ins/s", 0, false, "36", lifecycle, "BenchmarkSignIn", "sign-ins/s", "100x", 0},
	{"GET p95 while 200 sign in", "times quiet", 2, true, "", lifecycle, "BenchmarkSignInFlood", "ratio", "3x", 0},
	{"GET p95 while 200 sign in", "ms", 0, true, "", lifecycle, "BenchmarkSignInFlood", "flood-p95-ms", "3x", 0},
	{"10,000 streams of 1,000 users, events to all³", "frames/s", 250_000, false, "224000²", notifications, "BenchmarkStreams", "frames/s", "5x", 0},
	{"10,000 streams of 1,000 users, events to all³", "µs of the server's CPU/frame", 0, true, "5.2²", notifications, "BenchmarkStreams", "cpu-us/frame", "5x", 0},
	{"10,000 streams of 1,000 users, events to all³", "µs of the clients' CPU/frame", 0, true, "", notifications, "BenchmarkStreams", "client-us/frame", "5x", 0},
	{"10,000 streams of 10,000 users, events to all³", "frames/s", 0, false, "", notifications, "BenchmarkStreamsOfManyUsers", "frames/s", "2x", 0},
	{"10,000 streams of 10,000 users, events to all³", "µs of the server's CPU/frame", 0, true, "", notifications, "BenchmarkStreamsOfManyUsers", "cpu-us/frame", "2x", 0},
	{"memory of a stream", "kB", 2, true, "5.9", notifications, "BenchmarkStreams", "rss-B/stream", "5x", 0.001},
	{"cold start to the first 200", "ms", 60, true, "99 to 118", lifecycle, "BenchmarkColdStart/closed", "quickest-ms", "5x", 0},
	{"cold start to the first 200", "ms of CPU", 60, true, "110", lifecycle, "BenchmarkColdStart/closed", "least-cpu-ms", "5x", 0},
	{"idle memory", "MiB", 45, true, "43", lifecycle, "BenchmarkIdleMemory", "RSS-MiB", "1x", 0},
	{"lists at size: slowest request", "ms of CPU", 300, true, "17000 (elapsed)", lists, "", "slowest", "", 0},
	{"lists at size: requests above 300 ms", "", 0, true, "", lists, "", "slow", "", 0},
}

func (r row) scale() float64 {
	if r.factor == 0 {
		return 1
	}
	return r.factor
}

// aimText returns what a figure should reach.
func (r row) aimText() string {
	text := strconv.FormatFloat(r.aim, 'f', -1, 64)
	switch {
	case r.aim == 0:
		return ""
	case r.most:
		return "≤ " + text
	}
	return "≥ " + text
}

// verdict compares a figure with the aim.
func (r row) verdict(value float64) string {
	switch {
	case r.aim == 0:
		return ""
	case r.most && value <= r.aim, !r.most && value >= r.aim:
		return "reached"
	}
	return "not reached"
}

// A data set that is made for the table has these numbers of records.
const smallCustomers, smallNotifications = "20000", "200000"

// startLimit is how long a server may take to start; with a data set of an earlier version it changes the tables first.
const startLimit = 5 * time.Minute

// ofDataSet measures every list of a server with a data set, which it starts.
func (m measurement) ofDataSet(ctx context.Context, data string, found map[string]float64) (err error) {
	dir, err := os.MkdirTemp("", "kontor-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if data == "" {
		data = filepath.Join(dir, "data")
		fmt.Fprintln(os.Stderr, "==> a data set of", smallCustomers, "customers and", smallNotifications, "notifications")
		if err := command(ctx, "go", "run", "./modules/demo/dataset", "-data.dir", data, "-customers", smallCustomers, "-notifications", smallNotifications).Run(); err != nil {
			return fmt.Errorf("make a data set: %w", err)
		}
	}
	fmt.Fprintln(os.Stderr, "==> lists")
	program := filepath.Join(dir, "kontor")
	if err := command(ctx, "go", "build", "-o", program, ".").Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	server := command(ctx, program, "serve", "--data.dir", data, "--server.listen", address, "--metrics.listen", "", "--log.level", "error")
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(syscall.SIGTERM), server.Wait())
	}()
	if err := waitReady(ctx, "http://"+address); err != nil {
		return err
	}
	m.server, m.pid, m.only = "http://"+address, server.Process.Pid, ""
	if err := m.run(ctx, os.Stderr); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	found[lists+"  slow"], found[lists+"  slowest"] = float64(len(m.found)), float64(m.slowest.Milliseconds())
	return nil
}

// freeAddress returns an address on which no program listens at the moment.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
