package control

import "puntuale"

// Advice: what a person can do about a session.
const (
	hintConnecting    puntuale.ReasonCode = "hint.connecting"
	hintWaiting       puntuale.ReasonCode = "hint.waiting"
	hintBanned        puntuale.ReasonCode = "hint.banned"
	hintOutdated      puntuale.ReasonCode = "hint.outdated"
	hintReplaced      puntuale.ReasonCode = "hint.replaced"
	hintLoggedOut     puntuale.ReasonCode = "hint.logged_out"
	hintPasskey       puntuale.ReasonCode = "hint.passkey"
	hintKeys          puntuale.ReasonCode = "hint.official_keys"
	hintLinkDevice    puntuale.ReasonCode = "hint.link_device"
	hintDevicesLinked puntuale.ReasonCode = "hint.devices_linked"
	hintLinkGateway   puntuale.ReasonCode = "hint.link_gateway"
	hintLink          puntuale.ReasonCode = "hint.link"
	hintTypeCode      puntuale.ReasonCode = "hint.type_code"
	hintScanCode      puntuale.ReasonCode = "hint.scan_code"
	hintAwaitCode     puntuale.ReasonCode = "hint.await_code"
	hintLinked        puntuale.ReasonCode = "hint.linked"
	hintLimited       puntuale.ReasonCode = "hint.limited"
	hintOnline        puntuale.ReasonCode = "hint.online"
)

// hint gives the advice about a session, for every state. It is the same for programs and pages.
func (s Session) hint() puntuale.ReasonCode {
	switch s.Condition {
	case puntuale.Connecting:
		return hintConnecting
	case puntuale.Waiting:
		return hintWaiting
	case puntuale.Banned:
		return hintBanned
	case puntuale.Outdated:
		return hintOutdated
	case puntuale.Replaced:
		return hintReplaced
	case puntuale.LoggedOut:
		return hintLoggedOut
	case puntuale.NeedsPasskey:
		return hintPasskey
	}
	switch {
	case s.State == puntuale.LinkUnlinked && s.Type == puntuale.Official && !s.Sandbox:
		return hintKeys
	case s.State == puntuale.LinkUnlinked && s.ByDevice():
		return hintLinkDevice
	case s.ByDevice():
		return hintDevicesLinked
	case s.State == puntuale.LinkUnlinked && s.toGateway():
		return hintLinkGateway
	case s.State == puntuale.LinkUnlinked:
		return hintLink
	case s.State == puntuale.LinkPairing && s.Code != nil && s.Code.Method == puntuale.PairCode:
		return hintTypeCode
	case s.State == puntuale.LinkPairing && s.Code != nil:
		return hintScanCode
	case s.State == puntuale.LinkPairing:
		return hintAwaitCode
	case s.State == puntuale.LinkLinked:
		return hintLinked
	case !s.Limited.IsZero():
		return hintLimited
	}
	return hintOnline
}
