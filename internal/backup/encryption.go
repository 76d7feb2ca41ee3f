package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// Recipients are those who can open encrypted backups.
type Recipients struct {
	all    []age.Recipient
	hybrid bool // the recipients have post-quantum keys, which age does not mix with others
}

// ParseRecipients reads recipients of age, such as age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kudtnrg5s… None means
// that backups are not encrypted.
func ParseRecipients(texts []string) (r Recipients, err error) {
	for _, text := range texts {
		found, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil || len(found) != 1 {
			return Recipients{}, fmt.Errorf("%.12q… is no recipient of age, such as age1…", text)
		}
		r.all = append(r.all, found[0])
		r.hybrid = r.hybrid || strings.HasPrefix(text, "age1pq1")
	}
	if len(r.all) == 0 {
		return r, nil
	}
	if _, err := age.Encrypt(io.Discard, r.all...); err != nil {
		return Recipients{}, errors.New("these recipients cannot open the same file: take only age1pq1… or only age1…")
	}
	return r, nil
}

// none reports whether backups are not encrypted.
func (r Recipients) none() bool { return len(r.all) == 0 }

// encrypt encrypts to the recipients, and to an identity that is made for this file. opener is the text of this identity.
func (r Recipients) encrypt(to io.Writer) (_ io.WriteCloser, opener string, err error) {
	own, opener, err := r.fresh()
	if err != nil {
		return nil, "", err
	}
	w, err := age.Encrypt(to, append([]age.Recipient{own}, r.all...)...)
	return w, opener, err
}

func (r Recipients) fresh() (age.Recipient, string, error) {
	if r.hybrid {
		identity, err := age.GenerateHybridIdentity()
		if err != nil {
			return nil, "", err
		}
		return identity.Recipient(), identity.String(), nil
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, "", err
	}
	return identity.Recipient(), identity.String(), nil
}

// Identities open encrypted backups.
type Identities []age.Identity

// ReadIdentities reads the file of a secret key, as age-keygen writes it.
func ReadIdentities(name string) (Identities, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	defer f.Close()
	return ParseIdentities(f, name)
}

// ParseIdentities reads a secret key, as age-keygen writes it. name is for the error.
func ParseIdentities(from io.Reader, name string) (Identities, error) {
	found, err := age.ParseIdentities(io.LimitReader(from, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s has no key of age-keygen, with a line AGE-SECRET-KEY-…", name) // the error of age could quote a secret
	}
	return found, nil
}

// ErrNoIdentity is the error for an encrypted backup and the wrong identity, or none.
var ErrNoIdentity = errors.New("the backup is encrypted, and no given identity opens it")

// decrypt returns the contents of an encrypted file. They are true only if reading ends without an error.
func decrypt(from io.Reader, identities []age.Identity) (io.Reader, error) {
	if len(identities) == 0 {
		return nil, ErrNoIdentity
	}
	plain, err := age.Decrypt(from, identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, ErrNoIdentity
	case err != nil:
		return nil, fmt.Errorf("the backup cannot be decrypted: %w", err)
	}
	return plain, nil
}
