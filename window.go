package puntuale

// Window is when a message may leave: on these weekdays, from one time of day to another, perhaps not on holidays. It
// travels with the message and is checked again at claim, so that retries, late sessions and re-sends stay inside it.
type Window struct {
	Weekdays []int  `json:"weekdays,omitempty"` // 1 Monday to 7 Sunday; none: every day
	From     string `json:"from,omitempty"`     // "HH:MM", inclusive; "" with To "": the whole day
	To       string `json:"to,omitempty"`       // "HH:MM", exclusive; From later than To crosses midnight
	Holidays string `json:"holidays,omitempty"` // "avoid", or "" for no regard
	Closed   []Date `json:"closed,omitempty"`   // own dates of the client, frozen at start
}
