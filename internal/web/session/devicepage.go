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
	Here      string     // the path of the phone app with the code; "": there is no code
	Elsewhere string     // the address of the phone app with the code, for another phone
	Try       *view.Form // nil until a form was refused
}

// kindKey returns the key of the name of a device's kind.
func kindKey(d puntuale.Device) string {
	if d.Assisted {
		return "device.phone"
	}
	return "device.program"
}

// deviceURL returns the end of the address at which a device is unlinked.
func deviceURL(d puntuale.Device) string { return fmt.Sprintf("/devices/%d/unlink", d.ID) }
