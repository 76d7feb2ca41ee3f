package session

import (
	"fmt"
	"puntuale/internal/web/view"

	"puntuale"
)

// DeviceSide is what a session has that devices send for.
type DeviceSide struct {
	Devices   []puntuale.Device
	App       string     // the path of the phone app
	Here      string     // the path of the phone app that links with the code; "" none is offered
	Elsewhere string     // the same as an address for another phone
	Try       *view.Form // nil until one was refused
}

// kindKey names what kind of device it is.
func kindKey(d puntuale.Device) string {
	if d.Assisted {
		return "device.phone"
	}
	return "device.program"
}

// deviceURL is where a device of a session is unlinked.
func deviceURL(d puntuale.Device) string { return fmt.Sprintf("/devices/%d/unlink", d.ID) }
