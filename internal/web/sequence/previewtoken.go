package sequence

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"puntuale/internal/control"
)

// previewToken identifies a preview that a person saw: the messages, the phone number, and the due times. The form
// contains the token, so that a start does only what the screen showed. The token protects only against mistakes,
// because the sender of the form may start anything. For this reason it is not sealed.
type previewToken struct {
	content string // a hash of everything except the due times
	at      time.Time
	due     []time.Time
}

// tokenOf returns the token of a preview. The token depends on whether the phone number is in the blacklist. It does
// not depend on messages that are already pending. Therefore, if the same form is sent twice, both requests get the
// same answer.
func tokenOf(call control.StartCall, p control.Preview, status control.RecipientStatus, now time.Time) previewToken {
	s := previewToken{at: now}
	steps := []any{call.Sequence, call.Phone, string(call.Body), status.Blacklisted}
	for _, m := range p.Messages {
		steps = append(steps, m.Step, m.Content, m.Window)
		s.due = append(s.due, m.Due)
	}
	for _, skipped := range p.Skipped {
		steps = append(steps, "skipped", skipped.Step)
	}
	content, _ := json.Marshal(steps) // encoding texts and numbers as JSON cannot fail
	sum := sha256.Sum256(content)
	s.content = base64.RawURLEncoding.EncodeToString(sum[:])
	return s
}

// String returns the form of the token in a page: the hash, the time of the preview, and the due time of each message.
func (s previewToken) String() string {
	parts := []string{s.content, strconv.FormatInt(s.at.Unix(), 10)}
	for _, due := range s.due {
		parts = append(parts, strconv.FormatInt(due.Unix(), 10))
	}
	return strings.Join(parts, ".")
}

// previewValidFor is how long a preview is valid after it was shown.
const previewValidFor = time.Hour

// shownBy reports whether the argument text is the token of a preview that is equal to the preview of s. The preview of
// text must not be older than previewValidFor. Due times that count from the start may be later now, at most by the
// time since the preview was shown. If a due time changed by more, for example because a window ended, the previews are
// different.
func (s previewToken) shownBy(text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != len(s.due)+2 || parts[0] != s.content {
		return false
	}
	moments := make([]int64, 0, len(s.due)+1)
	for _, part := range parts[1:] {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return false
		}
		moments = append(moments, n)
	}
	took := s.at.Unix() - moments[0]
	if took < 0 || took > int64(previewValidFor/time.Second) {
		return false
	}
	return s.within(moments[1:], took)
}

// The method within reports whether each message has its previous due time, or is a little later. The argument took is
// the longest allowed delay in seconds.
func (s previewToken) within(before []int64, took int64) bool {
	for i, due := range s.due {
		if later := due.Unix() - before[i]; later < 0 || later > took {
			return false
		}
	}
	return true
}
