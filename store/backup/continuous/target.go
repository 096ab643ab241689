package continuous

import (
	"fmt"
	"net/url"
	"path/filepath"
)

// Open opens the target of an address: s3://bucket/prefix, file:///absolute/path, or a path.
func Open(address string) (Target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is neither an address such as s3://bucket/prefix nor a path", address)
	}
	switch u.Scheme {
	case "":
		path, err := filepath.Abs(address)
		return directory(path), err
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("%q is not an address such as file:///backup", address)
		}
		return directory(filepath.Clean(u.Path)), nil
	case "s3":
		b, err := openBucket(u)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", address, err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("%q: the target must be s3://bucket/prefix, file:///path, or a path", address)
}
