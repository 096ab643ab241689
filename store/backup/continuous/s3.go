package continuous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a target in an S3 bucket.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // with its slash, or empty
}

// openBucket opens a target such as s3://bucket/prefix?endpoint=https://s3.example&region=eu-central-1. Without an endpoint it is
// Amazon's. The credentials are those of the standard variables (AWS_ACCESS_KEY_ID and others), of the file ~/.aws/credentials, or
// of the machine.
func openBucket(u *url.URL) (*bucket, error) {
	query := u.Query()
	endpoint := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if text := query.Get("endpoint"); text != "" {
		var err error
		if endpoint, err = url.Parse(text); err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
			return nil, errors.New("the endpoint is not an address such as https://s3.example")
		}
	}
	for name := range query {
		if name != "endpoint" && name != "region" {
			return nil, fmt.Errorf("unknown parameter %q: endpoint and region are known", name)
		}
	}
	if u.Host == "" {
		return nil, errors.New("the name of the bucket is missing: s3://bucket/prefix")
	}
	if u.User != nil || endpoint.User != nil || u.Fragment != "" {
		return nil, errors.New("credentials do not belong into the address: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: endpoint.Scheme == "https", Region: query.Get("region"),
	})
	if err != nil {
		return nil, err
	}
	b := &bucket{client: client, name: u.Host}
	if prefix := strings.Trim(path.Clean(u.Path), "/."); prefix != "" {
		b.prefix = prefix + "/"
	}
	return b, nil
}

// Put uploads an object.
func (b *bucket) Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, in, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return err
}

// List lists the objects below the prefix.
func (b *bucket) List(ctx context.Context) (objects []Object, err error) {
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, o.Err
		}
		objects = append(objects, Object{Name: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size})
	}
	return objects, nil
}

// Get downloads an object.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	return download{object}, nil
}

// download is an object that is being downloaded. The request begins with the first read.
type download struct{ *minio.Object }

// Read returns fs.ErrNotExist for a missing object.
func (d download) Read(b []byte) (int, error) {
	n, err := d.Object.Read(b)
	if err != nil && minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return n, err
}

// Delete deletes an object.
func (b *bucket) Delete(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}

// String names the bucket.
func (b *bucket) String() string { return "s3://" + b.name + "/" + strings.TrimSuffix(b.prefix, "/") }
