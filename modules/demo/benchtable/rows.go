package main

import "strconv"

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
