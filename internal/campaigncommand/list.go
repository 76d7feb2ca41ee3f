package campaigncommand

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"puntuale/internal/client"
)

// list is a file of recipients. The command reads it at least twice: once for its checksum, and once for each try to
// upload it.
type list struct {
	file *os.File
	size int64
	sum  []byte
	free func() error
}

// openList opens a list. It first copies a list that cannot be read twice, such as a pipe, into a file.
func (r *run) openList(ctx context.Context) (l *list, err error) {
	l = &list{}
	if r.cfg.File == "-" {
		err = l.copy(ctx, r.cfg.In)
	} else {
		err = l.open(ctx, r.cfg.File)
	}
	if err == nil {
		sum := sha256.New()
		l.size, err = io.Copy(sum, l.file)
		l.sum = sum.Sum(nil)
	}
	if err == nil && l.size > client.MaxFile {
		err = fmt.Errorf("it has more than %d MiB", client.MaxFile>>20)
	}
	if err != nil {
		if l.free != nil {
			_ = l.free()
		}
		return nil, fmt.Errorf("read the list: %w", err)
	}
	return l, nil
}

func (l *list) open(ctx context.Context, name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	info, err := from.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		defer func() { _ = from.Close() }() // an error while closing a file after reading does not matter
		return l.copy(ctx, from)
	}
	l.file, l.free = from, from.Close
	return err
}

func (l *list) copy(ctx context.Context, from io.Reader) (err error) {
	if l.file, err = os.CreateTemp("", "puntuale-list-"); err != nil { // only the file's owner can read it
		return err
	}
	l.free = func() error { return errors.Join(l.file.Close(), os.Remove(l.file.Name())) }
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(l.file, io.LimitReader(from, client.MaxFile+1))
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	_, err = l.file.Seek(0, io.SeekStart)
	return err
}

// createOnce returns the Idempotency-Key for a campaign. The same list and the same order have the same key. Therefore,
// a repeated command continues the campaign of the first command. try is how many earlier drafts of this command ended
// without a start. They must not be continued.
func (l *list) createOnce(o client.CampaignOrder, try int) (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(text, l.sum...))
	return fmt.Sprintf("puntuale-campaign-%x-%d", sum, try), nil
}
