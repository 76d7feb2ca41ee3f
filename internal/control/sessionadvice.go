package control

import "puntuale"

// Codes of advice: what a person can do about a session.
const (
	adviceConnecting    puntuale.ReasonCode = "hint.connecting"
	adviceWaiting       puntuale.ReasonCode = "hint.waiting"
	adviceBanned        puntuale.ReasonCode = "hint.banned"
	adviceOutdated      puntuale.ReasonCode = "hint.outdated"
	adviceReplaced      puntuale.ReasonCode = "hint.replaced"
	adviceLoggedOut     puntuale.ReasonCode = "hint.logged_out"
	advicePasskey       puntuale.ReasonCode = "hint.passkey"
	adviceKeys          puntuale.ReasonCode = "hint.official_keys"
	adviceLinkDevice    puntuale.ReasonCode = "hint.link_device"
	adviceDevicesLinked puntuale.ReasonCode = "hint.devices_linked"
	adviceLinkGateway   puntuale.ReasonCode = "hint.link_gateway"
	adviceLink          puntuale.ReasonCode = "hint.link"
	adviceTypeCode      puntuale.ReasonCode = "hint.type_code"
	adviceScanCode      puntuale.ReasonCode = "hint.scan_code"
	adviceAwaitCode     puntuale.ReasonCode = "hint.await_code"
	adviceLinked        puntuale.ReasonCode = "hint.linked"
	adviceLimited       puntuale.ReasonCode = "hint.limited"
	adviceOnline        puntuale.ReasonCode = "hint.online"
)

// advice returns what a person can do about a session, for every state. Programs and pages get the same advice.
func (s Session) advice() puntuale.ReasonCode {
	switch s.Condition {
	case puntuale.Connecting:
		return adviceConnecting
	case puntuale.Waiting:
		return adviceWaiting
	case puntuale.Banned:
		return adviceBanned
	case puntuale.Outdated:
		return adviceOutdated
	case puntuale.Replaced:
		return adviceReplaced
	case puntuale.LoggedOut:
		return adviceLoggedOut
	case puntuale.NeedsPasskey:
		return advicePasskey
	}
	switch {
	case s.State == puntuale.LinkUnlinked && s.Type == puntuale.Official && !s.Sandbox:
		return adviceKeys
	case s.State == puntuale.LinkUnlinked && s.ByDevice():
		return adviceLinkDevice
	case s.ByDevice():
		return adviceDevicesLinked
	case s.State == puntuale.LinkUnlinked && s.toGateway():
		return adviceLinkGateway
	case s.State == puntuale.LinkUnlinked:
		return adviceLink
	case s.State == puntuale.LinkPairing && s.Code != nil && s.Code.Method == puntuale.PairCode:
		return adviceTypeCode
	case s.State == puntuale.LinkPairing && s.Code != nil:
		return adviceScanCode
	case s.State == puntuale.LinkPairing:
		return adviceAwaitCode
	case s.State == puntuale.LinkLinked:
		return adviceLinked
	case !s.Limited.IsZero():
		return adviceLimited
	}
	return adviceOnline
}
