package engine

import "time"

// Stats are counts since the database was opened, and the state of the moment.
type Stats struct {
	Writes      uint64        // jobs that were committed
	Commits     uint64        // groups that wrote, each with one sync
	Refused     uint64        // jobs rejected because too many waited
	Checkpoints uint64        // that copied committed pages from the log into the database
	Queued      int           // jobs that wait now
	Readers     int           // queries and views that wait for a reader now
	Revoked     uint64        // statements ended because their caller held more than its share while others waited
	Working     time.Duration // how long the current piece of work has taken; near 0 while all goes well
	Stalled     bool          // Working is too long, and Ready fails

	LogBytes     int64 // size of the write-ahead log
	LogUncopied  int64 // pages of it that are not in the database file yet
	LogLimit     int64 // from which an alarm is raised
	LogOverLimit bool
	Sync         Timing // of the log, for a group
	Checkpoint   Timing // those that copied something
}

// Timing is how often something was done, and how long it took.
type Timing struct {
	Count       int64
	Total, Last time.Duration
}
