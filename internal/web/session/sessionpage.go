package session

import (
	"fmt"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
	"strings"
	"time"

	"puntuale"
)

// Sender is a session in the form that pages use.
type Sender struct {
	puntuale.Session
	State     puntuale.LinkState
	Word      string // the name of the state in the API
	Number    string
	Detail    puntuale.Reason
	Hint      puntuale.Reason
	Code      *puntuale.PairingCode
	Until     time.Time
	Limited   time.Time
	PageUntil time.Time // the end of the session's linking page; zero: it has none that works
	StartName string
	StopName  string
}

// ToMeta reports whether the session sends through Meta's Cloud API.
func (s Sender) ToMeta() bool { return s.Type == puntuale.Official && !s.Sandbox }

// Stamp returns a text that changes when the linking part of the page changes. The text does not contain the linking
// code.
func (s Sender) Stamp() string {
	moment := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	return fmt.Sprintf("%s-%t-%d-%d", s.Word, s.Code != nil, moment(s.Until), moment(s.Limited))
}

// simulates reports whether the session is an online sandbox, whose messages reach nobody.
func (s Sender) simulates() bool { return s.Sandbox && s.State == puntuale.LinkOnline }

// ToGateway reports whether the session sends through a gateway.
func (s Sender) ToGateway() bool { return s.Type == puntuale.SendApp && !s.Sandbox && !s.ByDevice() }

// pageable reports whether somebody without an account could link the session's number through a page.
func (s Sender) pageable() bool {
	return !s.ByDevice() && !s.ToMeta() && (s.State == puntuale.LinkUnlinked || s.State == puntuale.LinkPairing)
}

// paced reports whether the page offers to change the pace.
func (s Sender) paced() bool {
	return s.Type != puntuale.Official && !s.ByDevice() || s.Pace != (puntuale.Pace{})
}

// tone returns the tone of the state's badge.
func (s Sender) tone() string {
	switch {
	case s.State == puntuale.LinkOnline && s.Limited.IsZero():
		return "ok"
	case s.State == puntuale.LinkOnline, s.State == puntuale.LinkLinked:
		return "warn"
	case s.State == puntuale.LinkPairing:
		return "wait"
	}
	return "bad"
}

func (s Sender) notice() string {
	switch s.tone() {
	case "ok":
		return "notice notice-ok"
	case "wait":
		return "notice"
	}
	return "notice notice-warn"
}

func (s Sender) icon() string {
	switch s.tone() {
	case "ok":
		return "circle-check"
	case "wait":
		return "hourglass"
	}
	return "alert-triangle"
}

// typeKey returns the text key for the session's kind.
func (s Sender) typeKey() string {
	if s.ByDevice() {
		return "session.type.device"
	}
	return "session.type." + strings.ToLower(string(s.Type))
}

// OneSession is the data of a session's page. A form is set only if the page shows it again after a refusal; otherwise
// it is nil.
type OneSession struct {
	Sender
	Sequences []view.Option // the sequences to choose from
	Meta      *MetaSide
	Devices   *DeviceSide
	Chatwoot  *puntuale.ChatwootLink // nil: there is no link
	PairForm  *view.Form
	CodeForm  *view.Form
	Pair      *view.Form // the form that chooses the default sequences
	PaceForm  *view.Form
	WaysForm  *view.Form
	LinkForm  *view.Form // the form that reconnects the session
	NameForm  *view.Form
	OfferForm *view.Form // the form that makes a linking page

	PageAddress string // of the linking page that was made now
}

// MetaSide is the part of an Official session's page about Meta.
type MetaSide struct {
	puntuale.NetworkTemplates
	Health    HealthSide
	Webhook   string // the full address of the network webhook
	Reachable bool   // true: Meta can probably reach the address
	Test      *TestResult
	Checks    []control.LinkCheck
	Setup     bool // true: the session is being set up
}

// TestResult is the result of a connection test.
type TestResult struct {
	OK      bool
	Message puntuale.Reason
}

func (o OneSession) pairForm() *view.Form {
	id := func(n puntuale.SequenceID) string {
		if n == 0 {
			return ""
		}
		return n.String()
	}
	return view.Fresh(o.Pair, view.Version, string(o.PairVersion()), "start", id(o.Start), "stop", id(o.Stop))
}

func (o OneSession) nameForm() *view.Form {
	return view.Fresh(o.NameForm, view.Version, string(o.Version()), "name", o.Name)
}

func (o OneSession) paceForm() *view.Form {
	p := o.Pace
	return view.Fresh(o.PaceForm, view.Version, string(o.Version()), "per_minute", fmt.Sprint(p.PerMinute), "per_day", fmt.Sprint(p.PerDay), "cold_per_minute", fmt.Sprint(p.ColdPerMinute),
		"cold_per_day", fmt.Sprint(p.ColdPerDay), "jitter", fmt.Sprint(p.Jitter))
}

func (o OneSession) waysForm() *view.Form {
	word := map[bool]string{true: "on"}
	return view.Fresh(o.WaysForm, view.Version, string(o.Version()), "direct_send", word[o.Ways.DirectSend], "marketing_messages", word[o.Ways.Marketing], "creative_features", word[o.Ways.Creative])
}

// StoredPace returns a form with the stored pace.
func (o OneSession) StoredPace() *view.Form { return o.paceForm() }

// Choice returns the name of a sequence among the options, or "" if the sequence is not an option.
func (o OneSession) Choice(id string) string {
	for _, c := range o.Sequences {
		if c.Value == id {
			return c.Text
		}
	}
	return ""
}

// HealthSide is what the page shows of a number's health.
type HealthSide struct {
	puntuale.SessionHealth
	Portfolio puntuale.Portfolio
}

// qualityTone returns the tone of the badge for the quality.
func (h HealthSide) qualityTone() string {
	return map[string]string{"GREEN": "ok", "YELLOW": "warn", "RED": "bad"}[h.Quality]
}

// nameTone returns the tone of the badge for the display name.
func (h HealthSide) nameTone() string {
	return map[string]string{"approved": "ok", "pending": "wait", "declined": "bad"}[h.DisplayName]
}

// calm reports whether people need not do anything.
func (h HealthSide) calm() bool { return len(h.Advice) == 0 && h.Restriction == "" }
