package settings

import (
	"crypto/sha256"
	"encoding/hex"
)

// ofNode are the settings that may differ between the nodes on one database: addresses, names, the log, and the size of a node.
var ofNode = map[string]bool{
	"server.listen": true, "server.redirect_listen": true, "server.tls_cert": true, "server.tls_key": true,
	"server.shutdown_seconds": true, "server.console_dir": true, "metrics.listen": true,
	"data.dir": true, "data.url": true, "data.connections": true, "cluster.node": true, "log.level": true, "log.format": true,
}

// Shared returns digests of the settings that must agree between the nodes on one database, by name, as far as they differ from their
// default. A secret counts as it is shown: masked.
func (r *Result) Shared() map[string]string {
	digests := map[string]string{}
	for _, l := range r.Changed() {
		// Secrets of the environment differ during a rotation. An address that was not set is that of the node.
		if l.Flag == "" || l.Source == FromDefault || ofNode[l.Name] {
			continue
		}
		digest := sha256.Sum256([]byte(l.Name + "\x00" + l.Text))
		digests[l.Name] = hex.EncodeToString(digest[:8])
	}
	return digests
}
