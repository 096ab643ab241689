package continuous

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
)

// Open opens the target of an address: s3://bucket/prefix, file:///absolute/path, or a path.
func Open(address string) (Target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("neither an address such as s3://bucket/prefix nor a path") // parse errors quote the address
	}
	switch u.Scheme {
	case "":
		path, err := filepath.Abs(address)
		return directory(path), err
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("%q is not an address such as file:///backup", shown(u))
		}
		return directory(filepath.Clean(u.Path)), nil
	case "s3":
		b, err := openBucket(u)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", shown(u), err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("%q: the target must be s3://bucket/prefix, file:///path, or a path", shown(u))
}

// shown returns an address for messages, without what may be a credential.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
