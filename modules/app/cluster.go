package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kontor/server"
	"kontor/store"
)

// errDeaf says that this node does not receive the changes of the others in time. It serves requests correctly and more slowly,
// because it reads from the database what it otherwise remembers.
var errDeaf = errors.New("this node does not receive the changes of other nodes; it asks the database for everything")

// checkCluster is the advisory probe of a node.
func (m *Modules) checkCluster(context.Context) error {
	if !m.DB.Remembers() {
		return errDeaf
	}
	return nil
}

// nodes returns the function that lists the nodes for readiness; nil with a data directory.
func (m *Modules) nodes() func() []server.Node {
	if !m.DB.Shared() {
		return nil
	}
	return func() []server.Node {
		known := m.DB.Nodes()
		nodes := make([]server.Node, len(known))
		for i, n := range known {
			nodes[i] = server.Node{Name: n.Name, Self: n.Self, Leads: n.Leads, Lag: n.Lag, Started: n.Started.Std(), LeaseEnd: n.LeaseUntil.Std()}
		}
		return nodes
	}
}

// clusterMetrics collects the state of the cluster as this node sees it. With a data directory the series exist, too: alerts need them.
type clusterMetrics struct {
	db                                        *store.DB
	nodes, leases, leads, listens, lag, queue *prometheus.Desc
}

func newClusterMetrics(db *store.DB) *clusterMetrics {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kontor_cluster_"+name, help, nil, nil)
	}
	return &clusterMetrics{
		db:      db,
		nodes:   describe("nodes", "Nodes that use the database, as this one sees them."),
		leases:  describe("leases", "Nodes whose lease is valid."),
		leads:   describe("leader", "1 if this node runs the jobs that run once for all nodes."),
		listens: describe("listening", "1 if this node receives the changes of others in time; otherwise it asks the database for everything."),
		lag:     describe("lag_seconds", "Time since the last heartbeat of this node."),
		queue:   describe("backlog", "Events of this node that are on the way through the database."),
	}
}

// Describe sends the descriptions of the metrics.
func (c *clusterMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.nodes, c.leases, c.leads, c.listens, c.lag, c.queue} {
		descriptions <- d
	}
}

// Collect sends the values of one moment.
func (c *clusterMetrics) Collect(values chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64) {
		values <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	known, now := c.db.Nodes(), c.db.Now()
	leases, lag, backlog := 0, time.Duration(0), 0
	for _, n := range known {
		if n.LeaseUntil == 0 || n.LeaseUntil > now {
			leases++
		}
		if n.Self {
			lag, backlog = n.Lag, n.Backlog
		}
	}
	gauge(c.nodes, float64(len(known)))
	gauge(c.leases, float64(leases))
	gauge(c.leads, gaugeOf(c.db.Leads()))
	gauge(c.listens, gaugeOf(c.db.Remembers()))
	gauge(c.lag, lag.Seconds())
	gauge(c.queue, float64(backlog))
}
