package hashing

import "time"

// startPause is the time after a failed start during which sums are computed in this process, and no start is tried.
const startPause = time.Minute

// mayStart reports whether workers may be used. After a failed start they are tried again when startPause has passed.
func (h *Hasher) mayStart() bool {
	failed := h.failedAt.Load()
	if failed == 0 {
		return true
	}
	since := h.now().Sub(time.Unix(0, failed))
	return since >= startPause || since < 0 // the clock was set back
}

// startFailed records and logs a failed start.
func (h *Hasher) startFailed(cause error) {
	h.failedAt.Store(h.now().UnixNano())
	h.log.Warn("passwords are hashed in the process of the server for a minute; sign-ins may delay other requests", "cause", cause)
}
