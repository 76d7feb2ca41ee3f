package session

import (
	"fmt"
	"puntuale/internal/web/view"

	"puntuale"
)

// DeviceSide is the part of a session's page about its devices.
type DeviceSide struct {
	Devices   []puntuale.Device
	App       string     // the path of the phone app
	Here      string     // the path of the phone app with a code; "": there is no code
	Elsewhere string     // the full address of the phone app with a code, to open on another phone
	Try       *view.Form // set only if the page shows the form again after a refusal; otherwise nil
}

// kindKey returns the text key for a device's kind.
func kindKey(d puntuale.Device) string {
	if d.Assisted {
		return "device.phone"
	}
	return "device.program"
}

// deviceURL returns the end of the address of the page that unlinks a device.
func deviceURL(d puntuale.Device) string { return fmt.Sprintf("/devices/%d/unlink", d.ID) }
