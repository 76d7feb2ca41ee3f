package session

import (
	"fmt"
	"puntuale/internal/web/view"

	"puntuale"
)

// DeviceSide is the part of a session that is about its devices.
type DeviceSide struct {
	Devices   []puntuale.Device
	App       string     // the path of the phone app
	Here      string     // the path of the phone app that links with the code; "" none is offered
	Elsewhere string     // the same as an address for another phone
	Try       *view.Form // nil until one was refused
}

// kindKey is the key of the name of a device's kind.
func kindKey(d puntuale.Device) string {
	if d.Assisted {
		return "device.phone"
	}
	return "device.program"
}

// deviceURL is the address at which a device is unlinked.
func deviceURL(d puntuale.Device) string { return fmt.Sprintf("/devices/%d/unlink", d.ID) }
