package puntuale

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// Version identifies the present editable values of a thing. It is a hash of these values, so it changes when a value
// changes. It has 16 characters of the URL-safe base64 alphabet.
//
// A method that changes a thing gets the versions that its caller knows. If the stored version is not among them,
// nothing changes and the code is precondition_failed. If the caller gives no version, the change always happens.
type Version string

// CheckVersion returns precondition_failed if the stored version is not among the versions that the caller knows.
func CheckVersion(stored Version, known []Version) error {
	if len(known) == 0 || slices.Contains(known, stored) {
		return nil
	}
	return &Error{Code: CodePrecondition, Reason: Because(FaultChangedSinceRead)}
}

// Version returns the version of the values in a sequence's editor.
func (s Sequence) Version() Version {
	return versionOf(s.Name, s.Session, s.IfRunning, s.StopOnReply, s.Booking, s.TrackLinks, s.Steps, moment(s.Updated))
}

// Version returns the version of the values in a template's editor.
func (t Template) Version() Version {
	return versionOf(t.Name, t.Text, t.Media, t.MediaName, t.Latitude, t.Longitude, t.Official, moment(t.Updated))
}

// Version returns the version of a session's name and pace. State and link do not change it.
func (s Session) Version() Version { return versionOf(s.Name, s.Pace, s.Ways) }

// PairVersion returns the version of a session's default sequences.
func (s Session) PairVersion() Version { return versionOf(s.Start, s.Stop) }

// Version returns the version of what a partner sets for a client, including settings and quotas. It leaves out the
// credits, because every message changes them.
func (c Client) Version() Version {
	var quotas [len(AllQuotas)]int64
	for i, q := range AllQuotas {
		quotas[i] = c.Quotas.Get(q)
	}
	closed, features := append([]Date{}, c.Closed...), append([]string{}, c.Features...) // nil and empty must give the same version
	return versionOf(c.Name, c.Phone, c.Profile, c.Refill, c.RefillTo, c.Zone, c.Region, c.Expires.String(), closed, features,
		c.Cap, c.Credits == nil, c.Suspended, c.Settings.Version(), quotas, c.Plan, c.PlanSince.String())
}

// Version returns the version of a plan's name and values.
func (p ClientPlan) Version() Version { return versionOf(p.Name, p.Values) }

// Version returns the version of a client's settings.
func (s ClientSettings) Version() Version {
	s.OptOutWords, s.ConfirmWords, s.CancelWords = s.Words()
	return versionOf(s)
}

// Version returns the version of a user's e-mail, name and role.
func (u User) Version() Version { return versionOf(u.Email, u.Name, u.Role) }

// Version returns the version of a partner's brand and of the host name that the partner asks for.
func (b Brand) Version() Version { return versionOf(b.Name, b.Colour, b.LogoKind, b.Host, b.Mark) }

// moment returns t in the form in which the store writes times.
func moment(t time.Time) int64 { return t.UnixMicro() }

func versionOf(parts ...any) Version {
	text, err := json.Marshal(parts)
	if err != nil { // only a coordinate that is NaN fails, and every caller has already refused such a coordinate
		return ""
	}
	sum := sha256.Sum256(text)
	return Version(base64.RawURLEncoding.EncodeToString(sum[:12]))
}
