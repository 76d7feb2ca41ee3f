package sendapp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/png" // lets image.Decode read PNG, the format of the gateways' codes
	"strings"
	"time"

	"github.com/liyue201/goqr"

	"puntuale"
)

// How long a pairing lasts, and how often it checks the link and shows a code.
const (
	maxPairing = 5 * time.Minute  // after this time a gateway ends a pairing if nobody scanned the code
	pairLook   = 3 * time.Second  // the wait between two checks whether the code was scanned
	codeAgain  = 20 * time.Second // the wait between two codes, because each code soon expires
)

const (
	reasonExpired   puntuale.ReasonCode = "sendapp.code_expired"
	reasonNoCode    puntuale.ReasonCode = "sendapp.no_code"
	reasonPairAgain puntuale.ReasonCode = "sendapp.pair_again"
)

// Reason codes of the errors in this file.
const (
	faultGatewayLinksAnother puntuale.ReasonCode = "gateway.links_another"
	faultGatewayNoInstance   puntuale.ReasonCode = "gateway.no_instance"
	faultGatewayNoKeys       puntuale.ReasonCode = "gateway.no_keys"
	faultGatewayQrOnly       puntuale.ReasonCode = "gateway.qr_only"
	faultGatewaySilent       puntuale.ReasonCode = "gateway.silent"
)

// Pair begins to link the gateway's number with a phone. The gateway shows only QR codes. If the instance in the keys
// is linked already, no code is needed.
func (c *Connector) Pair(ctx context.Context, session puntuale.SessionID, method puntuale.PairMethod, _ string) error {
	a := c.account(session)
	switch {
	case a == nil:
		return fmt.Errorf("session %d is not open", session)
	case method != puntuale.PairQR:
		return puntuale.Conflict(faultGatewayQrOnly)
	}
	a.endPairing()
	a.asking <- struct{}{}
	defer func() { <-a.asking }()
	keys, err := c.readKeys(ctx, a)
	switch {
	case err != nil:
		return err
	case keys == nil:
		return puntuale.Conflict(faultGatewayNoKeys)
	}
	if keys.InstanceID == "" {
		if err := c.newInstance(ctx, a, keys); err != nil {
			return err
		}
	}
	pairing, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	a.unpair = cancel
	a.mu.Unlock()
	// A status check that was under way may just have reported that nothing is linked. So Pair reports the pairing
	// again.
	a.report(puntuale.LinkReport{State: puntuale.LinkPairing})
	a.work.Go(func() {
		defer cancel()
		if err := puntuale.Recovered(func() error { a.pair(pairing, *keys); return nil }); err != nil {
			a.log.Error("pairing panicked", "error", err)
			a.paired(pairing, func() { a.set(puntuale.LinkUnlinked, reasonPairAgain) })
		}
	})
	return nil
}

// newInstance requests an instance from the gateway. An instance can have one number. A gateway gives the same instance
// to all callers until this instance is linked. So the store refuses the second session that gets the same instance.
func (c *Connector) newInstance(ctx context.Context, a *account, k *puntuale.GatewayKeys) error {
	answered, err := c.call(ctx, a, *k, "create_instance", inQuery, nil)
	switch {
	case err != nil:
		a.log.Info("a gateway makes no instance", "error", err)
		return puntuale.Conflict(faultGatewaySilent)
	case answered.Status != success || answered.Instance == "":
		return puntuale.Conflict(faultGatewayNoInstance, storable(answered.text(), 200))
	}
	k.InstanceID = answered.Instance
	err = c.keepInstance(ctx, a, *k)
	if puntuale.CodeOf(err) == puntuale.CodeConflict {
		return puntuale.Conflict(faultGatewayLinksAnother)
	}
	return err
}

func (a *account) pairing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unpair != nil
}

// endPairing ends the pairing under way, if there is one. It reports nothing.
func (a *account) endPairing() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unpair != nil {
		a.unpair()
		a.unpair = nil
	}
}

// paired ends the pairing of ctx and runs do, which reports the result. If ctx has ended, paired does nothing, because
// another pairing may have begun.
func (a *account) paired(ctx context.Context, do func()) {
	if ctx.Err() != nil {
		return
	}
	a.endPairing()
	do()
}

// pair shows codes until a phone scanned one, or until maxPairing has passed.
func (a *account) pair(ctx context.Context, k puntuale.GatewayKeys) {
	end := a.c.cfg.Clock.Now().Add(maxPairing)
	var shown time.Time
	for a.c.cfg.Clock.Now().Before(end) {
		found, err := a.c.ask(ctx, a, k)
		switch {
		case err == nil && found.state != puntuale.LinkUnlinked:
			a.paired(ctx, func() { a.reportLinked(k, found) })
			return
		case err == nil && found.action == noAccess:
			a.paired(ctx, func() { a.set(puntuale.LinkUnlinked, found.reason) })
			return
		}
		if now := a.c.cfg.Clock.Now(); now.Sub(shown) >= codeAgain {
			if reason := a.showCode(ctx, &k); reason != "" {
				a.paired(ctx, func() { a.set(puntuale.LinkUnlinked, reason) })
				return
			}
			shown = a.c.cfg.Clock.Now()
		}
		fired, release := a.c.cfg.Clock.After(pairLook)
		select {
		case <-fired:
		case <-ctx.Done():
			release()
			return
		}
		release()
	}
	a.paired(ctx, func() { a.set(puntuale.LinkUnlinked, reasonExpired) })
}

// reportLinked reports a number that was just linked. It reports nothing if the number was unlinked or the keys were
// replaced meanwhile.
func (a *account) reportLinked(k puntuale.GatewayKeys, s gatewayStatus) {
	a.asking <- struct{}{}
	defer func() { <-a.asking }()
	ctx, cancel := context.WithTimeout(a.ctx, lookWait)
	defer cancel()
	if err := puntuale.Recovered(func() error {
		now, err := a.c.readKeys(ctx, a)
		if err == nil && now != nil && *now == k {
			err = a.c.found(ctx, a, k, s)
		}
		return err
	}); err != nil {
		a.log.Warn("a number was linked, and could not be looked at", "error", err)
		a.lookNow()
	}
}

// showCode makes the gateway draw a code, and reports the code's text. It returns why the pairing must end, or "" if
// the pairing continues.
func (a *account) showCode(ctx context.Context, k *puntuale.GatewayKeys) puntuale.ReasonCode {
	answered, err := a.c.call(ctx, a, *k, "get_qrcode", inQuery, nil)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Info("a gateway shows no code", "error", err)
			return reasonSilent
		}
		return ""
	}
	if answered.Status != success {
		if reason := a.renew(ctx, k, answered.text()); reason != "" {
			return reason
		}
		if answered, err = a.c.call(ctx, a, *k, "get_qrcode", inQuery, nil); err != nil {
			return reasonSilent
		}
	}
	text, err := readCode(answered.Picture)
	if err != nil {
		a.log.Warn("a gateway's code cannot be read", "error", err)
		return reasonNoCode
	}
	a.report(puntuale.LinkReport{State: puntuale.LinkPairing, Code: puntuale.PairingCode{Method: puntuale.PairQR, Text: text},
		Until: a.c.cfg.Clock.Now().Add(codeAgain + pairLook)})
	return ""
}

// renew requests a new instance if the gateway refuses to link the present instance.
func (a *account) renew(ctx context.Context, k *puntuale.GatewayKeys, text string) puntuale.ReasonCode {
	does, reason := meaning(text)
	switch does {
	case used, relink:
	case unknown:
		return reasonPairAgain
	default:
		return reason
	}
	old := k.InstanceID
	k.InstanceID = ""
	a.asking <- struct{}{}
	defer func() { <-a.asking }()
	if err := a.c.newInstance(ctx, a, k); err != nil {
		a.log.Warn("a gateway makes no other instance", "error", err)
		return reasonPairAgain
	}
	if k.InstanceID == old {
		return reasonPairAgain
	}
	return ""
}

// readCode returns the text of a QR code. The code's picture is in a data URL.
func readCode(address string) (string, error) { return guarded(decodeCode, address) }

// guarded reads a picture that a gateway drew. A picture at which the library panics must not end the server.
func guarded(read func(string) (string, error), address string) (code string, err error) {
	err = puntuale.Recovered(func() (err error) {
		code, err = read(address)
		return err
	})
	return code, err
}

func decodeCode(address string) (string, error) {
	_, data, ok := strings.Cut(address, "base64,")
	if !ok {
		return "", errors.New("it is no data address")
	}
	drawn, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("decode it: %w", err)
	}
	if size, _, err := image.DecodeConfig(bytes.NewReader(drawn)); err != nil || size.Width > codePixels || size.Height > codePixels {
		return "", errors.New("it is no picture of a usual size")
	}
	picture, _, err := image.Decode(bytes.NewReader(drawn))
	if err != nil {
		return "", fmt.Errorf("read the picture: %w", err)
	}
	found, err := goqr.Recognize(framed(picture))
	if err != nil {
		return "", fmt.Errorf("find a code in the picture: %w", err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the picture has %d codes", len(found))
	}
	return string(found[0].Payload), nil
}

// framed returns the picture in grey, with a white frame, and larger if it is small. The library does not find a code
// that touches the edge, or whose modules are one pixel wide.
func framed(picture image.Image) *image.Gray {
	const frame = 40 // pixels
	b, scale := picture.Bounds(), 1
	if b.Dx() < codePixels/4 {
		scale = 3
	}
	drawn := image.NewGray(image.Rect(0, 0, scale*b.Dx()+2*frame, scale*b.Dy()+2*frame))
	for i := range drawn.Pix {
		drawn.Pix[i] = 0xFF
	}
	for y := range scale * b.Dy() {
		for x := range scale * b.Dx() {
			drawn.Set(frame+x, frame+y, picture.At(b.Min.X+x/scale, b.Min.Y+y/scale))
		}
	}
	return drawn
}

// codePixels is the largest width and height of a picture, because a small file may contain a huge picture.
const codePixels = 2000
