package app

import (
	"context"
	"errors"
	"time"

	"kontor/server"
	"kontor/server/metrics"
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

// addClusterMetrics adds the state of the cluster, as this node sees it, to a scrape. With a data directory the series exist, too:
// alerts need them.
func addClusterMetrics(s *metrics.Scrape, db *store.DB) {
	known, now := db.Nodes(), db.Now()
	leases, lag, backlog := 0, time.Duration(0), 0
	for _, n := range known {
		if n.LeaseUntil == 0 || n.LeaseUntil > now {
			leases++
		}
		if n.Self {
			lag, backlog = n.Lag, n.Backlog
		}
	}
	gauge := func(name, help string, value float64) { s.Gauge("kontor_cluster_"+name, help, value) }
	gauge("nodes", "Nodes that use the database, as this one sees them.", float64(len(known)))
	gauge("leases", "Nodes whose lease is valid.", float64(leases))
	gauge("leader", "1 if this node runs the jobs that run once for all nodes.", gaugeOf(db.Leads()))
	gauge("listening", "1 if this node receives the changes of others in time; otherwise it asks the database for everything.", gaugeOf(db.Remembers()))
	gauge("lag_seconds", "Time since the last heartbeat of this node.", lag.Seconds())
	gauge("backlog", "Events of this node that are on the way through the database.", float64(backlog))
}
