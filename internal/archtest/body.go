package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

// bodyReaders are functions that read a body without the bounds of internal/outside. Package
// admission reads the bodies of requests.
var bodyReaders = []string{"io.ReadAll", "io.ReadFull", "io.Copy", "io.CopyN", "io.LimitReader", "json.NewDecoder", "bufio.NewReader", "bufio.NewScanner", "xml.NewDecoder"}

// checkBodies reports every body that a file gives to one of bodyReaders.
func (c *checker) checkBodies(name string, parsed *ast.File, line func(token.Pos) int) {
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := f.X.(*ast.Ident); !ok || !slices.Contains(bodyReaders, pkg.Name+"."+f.Sel.Name) {
			return true
		}
		for _, arg := range call.Args {
			if s, ok := arg.(*ast.SelectorExpr); ok && s.Sel.Name == "Body" {
				c.report(name, line(call.Pos()), "%s reads a body without bounds: internal/outside has the kinds of answers", f.Sel.Name)
			}
		}
		return true
	})
}
