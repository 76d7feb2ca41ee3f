package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const (
	maxFields     = 20 // fields of a struct; an embedded type counts as one. A struct with more probably describes two things
	maxInterfaces = 25 // interfaces of the root. An interface with one user stands where it is used
)

// narrow lists the folders whose structs must have at most maxFields fields. It includes the folders below them.
var narrow = []string{"internal/dispatch"}

// checkShape counts the fields of structs, and the interfaces of the root. It finds transports that read headers without
// a bound.
func (c *checker) checkShape(name, folder string, parsed *ast.File, line func(token.Pos) int) {
	ast.Inspect(parsed, func(n ast.Node) bool {
		if made, ok := n.(*ast.CompositeLit); ok && readsOutside(name, folder) && isTransport(made.Type) && !sets(made, "MaxResponseHeaderBytes") {
			c.report(name, line(made.Pos()), "a transport must set MaxResponseHeaderBytes")
		}
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		switch shape := spec.Type.(type) {
		case *ast.StructType:
			if count := members(shape.Fields); count > maxFields && slices.ContainsFunc(narrow, func(p string) bool { return below(folder, p) }) {
				c.report(name, line(spec.Pos()), "%s has %d fields, %d are allowed: group them by noun", spec.Name.Name, count, maxFields)
			}
		case *ast.InterfaceType:
			if folder == "." && ast.IsExported(spec.Name.Name) {
				if c.interfaces++; c.interfaces == maxInterfaces+1 {
					c.report(name, line(spec.Pos()), "%s is one interface more than the %d that the root may have: put it where it is used", spec.Name.Name, maxInterfaces)
				}
			}
		}
		return true
	})
}

// readsOutside reports whether a file may call servers of others. Commands in a terminal call our own server.
func readsOutside(name, folder string) bool {
	return strings.HasPrefix(folder, "internal/") && !strings.HasSuffix(name, "_test.go") && !testPackage(folder) && folder != "internal/demo"
}

func isTransport(of ast.Expr) bool {
	s, ok := of.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Transport" && fmt.Sprint(s.X) == "http"
}

func sets(made *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(made.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		return ok && fmt.Sprint(pair.Key) == field
	})
}

// members counts fields: "a, b int" counts as two, and an embedded type as one.
func members(list *ast.FieldList) (count int) {
	for _, field := range list.List {
		count += max(1, len(field.Names))
	}
	return count
}
