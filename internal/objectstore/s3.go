package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"

	"puntuale"
)

// S3 says how to reach a service that understands S3.
type S3 struct {
	Endpoint             string // https://s3.example.com; http only for trials
	Region               string
	AccessKey, SecretKey string
}

const (
	s3Scheme = "s3://"
	// partSize is the size of an upload's parts, in bytes. Without it, minio-go takes 537 MiB of memory for a file of
	// unknown size. S3 allows 10,000 parts, so a backup has at most 156 GiB.
	partSize = 16 << 20
	// maxListing is the most that an answer other than a file may have, in bytes. A page of a list has a thousand names.
	maxListing = 8 << 20
	maxHeaders = 64 << 10
	// maxTries is how often minio-go sends a request whose answer is an error of the server. Its own 10 take minutes.
	maxTries = 3
	// removalsAtOnce is how many parts of one file are removed at the same time.
	removalsAtOnce = 8
)

// CheckS3 returns what is wrong with an address s3://bucket/folder, or with the way to its service; nil: nothing.
func CheckS3(address string, s S3) error {
	rest, ok := strings.CutPrefix(address, s3Scheme)
	if !ok {
		return nil
	}
	_, err := s.open(rest)
	return err
}

// IsS3 reports whether an address is one of S3, and not a folder or a file.
func IsS3(address string) bool { return strings.HasPrefix(address, s3Scheme) }

func (s S3) open(address string) (Storage, error) {
	bucket, prefix, _ := strings.Cut(address, "/")
	if bucket == "" || strings.ContainsAny(address, "?#@\\ ") || strings.Contains(address, "//") {
		return nil, errors.New("must be s3://bucket/folder")
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("needs an s3-endpoint such as https://s3.eu-central-1.amazonaws.com")
	}
	if s.AccessKey == "" || s.SecretKey == "" {
		return nil, errors.New("needs s3-access-key and s3-secret-key")
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the storage: %w", err)
	}
	transport.MaxResponseHeaderBytes = maxHeaders
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Secure: u.Scheme == "https", Region: s.Region, Transport: boundedTransport{transport}, MaxRetries: maxTries,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the storage: %w", err)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &objects{client, bucket, prefix}, nil
}

// objects stores files as objects of a bucket whose names begin with the prefix.
type objects struct {
	client         *minio.Client
	bucket, prefix string
}

func (o *objects) Put(ctx context.Context, name string, from io.Reader) error {
	// The condition If-None-Match would close the gap between this question and the upload's end. But minio-go does not
	// send it with the end of an upload in parts. No other attempt uses this name, which is a time.
	_, err := o.client.StatObject(ctx, o.bucket, o.prefix+name, minio.StatObjectOptions{})
	if err == nil {
		return fmt.Errorf("store %s: it exists already", name)
	}
	if minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
		return fmt.Errorf("store %s: %w", name, err)
	}
	counted := &counter{from: reader{ctx, from}}
	options := minio.PutObjectOptions{PartSize: partSize, ContentType: "application/octet-stream"}
	info, err := o.client.PutObject(ctx, o.bucket, o.prefix+name, counted, -1, options)
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	if info.Size != counted.n {
		return fmt.Errorf("store %s: %d bytes were sent, and %d are there", name, counted.n, info.Size)
	}
	return nil
}

func (o *objects) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := o.client.GetObject(ctx, o.bucket, o.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := object.Stat(); err != nil { // GetObject asks nothing yet
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), object.Close())
	}
	return object, nil
}

func (o *objects) List(ctx context.Context) (all []File, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the listing's goroutine
	defer cancel()
	for object := range o.client.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Prefix: o.prefix}) {
		if object.Err != nil {
			return nil, fmt.Errorf("list the files: %w", object.Err)
		}
		if len(all) == maxFiles {
			return nil, errTooManyFiles
		}
		if name := strings.TrimPrefix(object.Key, o.prefix); name != "" && name == path.Base(name) {
			all = append(all, File{name, object.Size})
		}
	}
	return all, nil
}

func (o *objects) Remove(ctx context.Context, name string) error {
	if err := o.client.RemoveObject(ctx, o.bucket, o.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Sweep ends the uploads of killed servers, whose parts cost money until then.
func (o *objects) Sweep(ctx context.Context, before time.Time, ours func(string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for upload := range o.client.ListIncompleteUploads(ctx, o.bucket, o.prefix, true) {
		if upload.Err != nil {
			return fmt.Errorf("list unfinished uploads: %w", upload.Err)
		}
		if !upload.Initiated.Before(before) || !ours(strings.TrimPrefix(upload.Key, o.prefix)) {
			continue
		}
		if err := o.client.RemoveIncompleteUpload(ctx, o.bucket, upload.Key); err != nil {
			return fmt.Errorf("end an unfinished upload: %w", err)
		}
	}
	return nil
}

func (o *objects) partName(folder string, n int) string {
	return o.prefix + folder + "/" + strconv.Itoa(n)
}

func (o *objects) Replace(ctx context.Context, folder string, n int, content []byte) error {
	info, err := o.client.PutObject(ctx, o.bucket, o.partName(folder, n), bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("store an object: %w", err)
	}
	if info.Size != int64(len(content)) {
		return fmt.Errorf("store an object: %d bytes were sent, and %d are there", len(content), info.Size)
	}
	return nil
}

func (o *objects) Read(ctx context.Context, folder string, n int, most int64) ([]byte, error) {
	from, _, _, err := (minio.Core{Client: o.client}).GetObject(ctx, o.bucket, o.partName(folder, n), minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	defer from.Close()
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return content, nil
}

func (o *objects) RemoveFolder(ctx context.Context, folder string, n int) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(removalsAtOnce)
	for i := range n {
		all.Go(func() error {
			if err := puntuale.Recovered(func() error {
				return o.client.RemoveObject(ctx, o.bucket, o.partName(folder, i), minio.RemoveObjectOptions{})
			}); err != nil {
				return fmt.Errorf("remove an object: %w", err)
			}
			return nil
		})
	}
	return all.Wait()
}

// counter counts the bytes that are read through it. minio-go takes io.ErrUnexpectedEOF of a source for its end, and would
// store a part as the whole. So the counter returns every error as one of its own.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped EOF is no end
		err = fmt.Errorf("the source broke off: %s", err.Error())
	}
	return n, err
}

// boundedTransport bounds the answers of the storage that are no files. minio-go reads them into memory.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet || r.URL.RawQuery != "" || answer.StatusCode >= http.StatusMultipleChoices {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxListing)
	}
	return answer, nil
}
