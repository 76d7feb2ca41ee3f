package puntuale

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// Version identifies the editable values of a thing at one moment. It is a hash of these values, so every change of
// them changes the version. It holds 16 characters of the URL-safe base64 alphabet.
//
// Verbs that change such a thing take the versions that their caller knows. The stored one must be among them, else the code is
// precondition_failed and nothing is changed. Without any, whatever is stored is replaced.
type Version string

// CheckVersion returns the error of a change whose caller knows other versions than the stored one.
func CheckVersion(stored Version, known []Version) error {
	if len(known) == 0 || slices.Contains(known, stored) {
		return nil
	}
	return &Error{Code: CodePrecondition, Reason: Because(FaultChangedSinceRead)}
}

// Version is the version of what a sequence's editor shows.
func (s Sequence) Version() Version {
	return versionOf(s.Name, s.Session, s.IfRunning, s.StopOnReply, s.Steps, moment(s.Updated))
}

// Version is the version of what a template's editor shows.
func (t Template) Version() Version {
	return versionOf(t.Name, t.Text, t.Media, t.MediaName, t.Latitude, t.Longitude, t.Official, moment(t.Updated))
}

// Version is the version of a session's name and pace. State and link do not count.
func (s Session) Version() Version { return versionOf(s.Name, s.Pace) }

// PairVersion is the version of a session's default sequences.
func (s Session) PairVersion() Version { return versionOf(s.Start, s.Stop) }

// Version is the version of what a partner sets for a client. It leaves out the balance, which every message changes.
func (c Client) Version() Version {
	closed, features := append([]Date{}, c.Closed...), append([]string{}, c.Features...) // nil and empty must give the same version
	return versionOf(c.Name, c.Phone, c.Profile, c.Refill, c.RefillTo, c.Zone, c.Region, c.Expires.String(), closed, features,
		c.Cap, c.Credits == nil, c.Suspended)
}

// Version is the version of a user's name and role.
func (u User) Version() Version { return versionOf(u.Email, u.Name, u.Role) }

// Version is the version of a partner's brand, and of the host name that the partner asks for.
func (b Brand) Version() Version { return versionOf(b.Name, b.Colour, b.LogoKind, b.Host, b.Mark) }

// moment is a time in stored form.
func moment(t time.Time) int64 { return t.UnixMicro() }

func versionOf(parts ...any) Version {
	text, err := json.Marshal(parts)
	if err != nil { // only NaN as a coordinate fails, and no verb accepts that
		return ""
	}
	sum := sha256.Sum256(text)
	return Version(base64.RawURLEncoding.EncodeToString(sum[:12]))
}
