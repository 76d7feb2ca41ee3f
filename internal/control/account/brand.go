package account

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg" // a logo may be a JPEG picture
	_ "image/png"  // a logo may be a PNG picture
	"regexp"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// Limits of a logo.
const (
	MaxLogo     = 256 << 10 // the largest file, in bytes
	maxLogoSide = 2000      // the largest width and height, in pixels
)

// BrandChange is a request to change a partner's brand.
type BrandChange struct {
	Name   string
	Colour string // #rrggbb; "": the product's own colour
	Host   string // the host name that the partner wants, in any form; "": none
	Logo   []byte // PNG or JPEG; nil: the current logo does not change
	NoLogo bool   // true: remove the current logo

	Known []puntuale.Version // the brand's version must be one of these; empty: any version
}

var colourShape = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// Host returns the partner and its brand.
func (p *Partner) Host(ctx context.Context) (puntuale.Host, error) { return p.tenant.Host(ctx) }

// Codes of the faults that this file reports.
const (
	faultLargerThanKB     puntuale.ReasonCode = "fault.larger_than_kb"
	faultLargerThanPixels puntuale.ReasonCode = "fault.larger_than_pixels"
	faultNotColour        puntuale.ReasonCode = "fault.not_colour"
	faultNotPicture       puntuale.ReasonCode = "fault.not_picture"
)

// SetBrand changes the brand. A new host name has no effect until it is confirmed. Codes: invalid; conflict if the host
// name is another partner's; precondition_failed.
func (p *Partner) SetBrand(ctx context.Context, r BrandChange) error {
	b := puntuale.Brand{Name: strings.TrimSpace(r.Name), Colour: strings.ToLower(strings.TrimSpace(r.Colour))}
	var f request.Faults
	f.Text("body.name", b.Name, puntuale.MaxName)
	if b.Colour != "" && !colourShape.MatchString(b.Colour) {
		f.Add("body.colour", faultNotColour, r.Colour)
	}
	b.Host = p.accounts.askedHost(&f, r.Host)
	b.Logo, b.LogoKind = logo(&f, r.Logo)
	if err := f.Err(); err != nil {
		return err
	}
	if r.Logo == nil && !r.NoLogo {
		var err error
		if b.Logo, b.LogoKind, err = p.tenant.Logo(ctx); err != nil {
			return fmt.Errorf("read the logo: %w", err)
		}
	}
	if err := p.tenant.SetBrand(ctx, b, r.Known...); err != nil {
		return fmt.Errorf("store the brand: %w", err)
	}
	return nil
}

// logo checks a picture before anybody else sees it. It detects the picture's format from the first bytes, and ignores
// the format that the caller declared.
func logo(f *request.Faults, content []byte) ([]byte, string) {
	if content == nil {
		return nil, ""
	}
	if len(content) > MaxLogo {
		f.Add("body.logo", faultLargerThanKB, nil, strconv.Itoa(MaxLogo>>10))
		return nil, ""
	}
	config, form, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil || form != "png" && form != "jpeg" {
		f.Add("body.logo", faultNotPicture, nil)
		return nil, ""
	}
	if config.Width > maxLogoSide || config.Height > maxLogoSide {
		f.Add("body.logo", faultLargerThanPixels, nil, strconv.Itoa(maxLogoSide), strconv.Itoa(maxLogoSide))
		return nil, ""
	}
	return content, "image/" + form
}
