package view

import "time"

// OpenVisit is a browser in which the person is signed in.
type OpenVisit struct {
	Token   string // hash of the browser's token, with which the person ends it
	Program string // the browser as it names itself; "": not known
	Address string // its IP address; "": not known
	Begun   time.Time
	Seen    time.Time // the last request, to about five minutes
	Here    bool      // it is the browser of this request
}
