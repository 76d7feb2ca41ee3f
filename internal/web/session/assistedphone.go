package session

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/static"
)

// assistedRoutes contains the phone app: its page, and the files with which a browser can install the app. The app's
// script calls the API for devices; see docs/device.md. The page and the files are the same for every linked device.
var assistedRoutes = []page.Route{
	page.Get("/phone", page.Anyone, 0, assisted),
	page.Get("/phone/manifest.webmanifest", page.Anyone, 0, assistedManifest),
	page.Get("/phone/worker.js", page.Anyone, 0, assistedWorker),
	page.Get("/phone/icon/{partner}/{mark}/{size}", page.Anyone, 0, sendAssistedIcon),
}

// assistedHost finds the partner whose brand the app shows, and sets this brand in the page's frame. It tries, in this
// order, the host name, the slug in the address, the signed-in person, and the partner whose pages the browser showed
// last. There may be no partner.
func assistedHost(v *page.Request) (h puntuale.Host, err error) {
	slug := v.Query("p")
	h, err = v.Site.Accounts.PartnerAt(v.Ctx(), v.HTTP.Host, "")
	if missing(err) && slug != "" {
		h, err = v.Site.Accounts.PartnerAt(v.Ctx(), "", slug)
	}
	if missing(err) && v.Person != nil {
		h, err = v.Person.Host(), nil
	}
	if seen := httpkit.SlugIn(v.HTTP, httpkit.BrandCookie); missing(err) && seen != "" {
		h, err = v.Site.Accounts.PartnerAt(v.Ctx(), "", seen)
	}
	if missing(err) {
		return puntuale.Host{}, nil
	}
	if err == nil {
		v.Frame.Look = page.LookOf(h)
	}
	return h, err
}

func missing(err error) bool { return puntuale.CodeOf(err) == puntuale.CodeNotFound }

// assistedPage returns the page's data for a partner. The data depends only on the partner, because assistedWorker
// hashes the page.
func assistedPage(v *page.Request, h puntuale.Host) AssistedPage {
	return AssistedPage{Icon: assistedIcon(h, 192), Slug: h.Partner.Slug}
}

// noMark is the mark in the address of an icon if the brand was never set.
const noMark = "0"

// assistedIcon returns the address of the app's icon. size is the length of a side in pixels. The address changes with
// the partner's brand.
func assistedIcon(h puntuale.Host, size int) string {
	return page.AssistedPath + "/icon/" + strconv.FormatInt(int64(h.Partner.ID), 10) + "/" + cmp.Or(h.Brand.Mark, noMark) + "/" + strconv.Itoa(size) + ".png"
}

func assisted(v *page.Request) error {
	h, err := assistedHost(v)
	if err != nil {
		return err
	}
	if slug := v.Query("p"); slug != "" && slug == h.Partner.Slug {
		v.KeepSlug(slug) // the installed app requests its files without the slug
	}
	v.Writer.Header().Set("Content-Security-Policy", page.Policy+"; worker-src 'self'")
	return v.Show(Assisted(assistedPage(v, h)))
}

// assistedManifest sends the manifest, which describes how to install the app. On an iPhone the installed app has
// separate cookies, so the app's first address contains the partner's slug.
func assistedManifest(v *page.Request) error {
	h, err := assistedHost(v)
	if err != nil {
		return err
	}
	start := page.AssistedPath
	if h.Partner.Slug != "" {
		start += "?" + url.Values{"p": {h.Partner.Slug}}.Encode()
	}
	type icon struct {
		Source  string `json:"src"`
		Sizes   string `json:"sizes"`
		Type    string `json:"type"`
		Purpose string `json:"purpose"`
	}
	manifest := struct {
		ID         string `json:"id"`
		Name       string `json:"name"`
		Short      string `json:"short_name"`
		Language   string `json:"lang"`
		Start      string `json:"start_url"`
		Scope      string `json:"scope"`
		Display    string `json:"display"`
		Background string `json:"background_color"`
		Theme      string `json:"theme_color"`
		Icons      []icon `json:"icons"`
	}{page.AssistedPath, v.Frame.Look.Name, v.Frame.Look.Name, v.Frame.Language.Code, start, page.AssistedPath, "standalone", page.LightPaper.Page, page.LightPaper.Page, nil}
	for _, size := range iconSizes {
		sizes := strconv.Itoa(size) + "x" + strconv.Itoa(size)
		manifest.Icons = append(manifest.Icons, icon{assistedIcon(h, size), sizes, "image/png", "any"}, icon{assistedIcon(h, size), sizes, "image/png", "maskable"})
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return sendFile(v, "application/manifest+json", content)
}

// assistedFiles are the files of package static that the app's page loads.
var assistedFiles = []string{"tabler.css", "app.css", "theme.js", "app.js", "assisted.js", "alpine.js"}

// assistedWorker sends the service worker: first a list of files and texts, then the code. The name of the worker's
// cache contains a hash of the page. So any change to the page, its files or the brand creates a new cache.
func assistedWorker(v *page.Request) error {
	h, err := assistedHost(v)
	if err != nil {
		return err
	}
	content, err := v.Rendered(Assisted(assistedPage(v, h)))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(content))
	shell := struct {
		Version string   `json:"version"`
		Page    string   `json:"page"`
		Files   []string `json:"files"`
		Icon    string   `json:"icon"`
		Title   string   `json:"title"`
		Body    string   `json:"body"`
	}{hex.EncodeToString(sum[:8]), page.AssistedPath, nil, assistedIcon(h, 192), v.Frame.Look.Name, v.T("assisted.push.body")}
	for _, name := range assistedFiles {
		shell.Files = append(shell.Files, static.URL(name))
	}
	for _, address := range []string{v.Frame.Look.Style, cmp.Or(v.Frame.Look.Logo, static.URL("icon.svg"))} {
		if address != "" {
			shell.Files = append(shell.Files, address)
		}
	}
	words, err := json.Marshal(shell)
	if err != nil {
		return err
	}
	v.Writer.Header().Set("Service-Worker-Allowed", page.AssistedPath)
	v.Writer.Header().Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'")
	return sendFile(v, "text/javascript; charset=utf-8", bytes.Join([][]byte{[]byte("const shell = "), words, []byte(";\n"), static.Content("assisted-worker.js")}, nil))
}

// sendAssistedIcon draws the app's icon. The address changes with the picture, so browsers may store the icon for ever.
func sendAssistedIcon(v *page.Request) error {
	size, err := strconv.Atoi(strings.TrimSuffix(v.Path("size"), ".png"))
	if err != nil || !isIconSize(size) || !strings.HasSuffix(v.Path("size"), ".png") {
		return page.ErrNoPage
	}
	var colour string
	var logo []byte
	if v.Path("mark") != noMark {
		h, err := page.BrandOf(v)
		if err != nil {
			return err
		}
		colour = h.Brand.Colour
		if h.Brand.LogoKind != "" {
			if logo, _, err = v.Site.Accounts.Logo(v.Ctx(), h.Partner.ID); err != nil {
				return err
			}
		}
	}
	if err := v.Memory.Take(iconMemory(logo, size)); err != nil {
		return err
	}
	return page.ServeForGood(v, "image/png", drawIcon(size, colour, logo))
}

// sendFile answers with a file. The browser must request the file again each time.
func sendFile(v *page.Request, kind string, content []byte) error {
	if err := v.Memory.Take(int64(len(content))); err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = v.Writer.Write(content) // this fails only if the reader closed the connection or reads too slowly
	return nil
}
