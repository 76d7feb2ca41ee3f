package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

const (
	maxFields     = 20 // fields of a struct; an embedded type counts as one. A struct with more probably describes two things
	maxInterfaces = 25 // interfaces of the root. An interface with one user stands where it is used
)

// narrow lists the folders whose structs must have at most maxFields fields. It includes the folders below them.
var narrow = []string{"internal/dispatch"}

// checkShape counts the fields of structs, and the interfaces of the root.
func (c *checker) checkShape(name, folder string, parsed *ast.File, line func(token.Pos) int) {
	ast.Inspect(parsed, func(n ast.Node) bool {
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

// members counts fields: "a, b int" counts as two, and an embedded type as one.
func members(list *ast.FieldList) (count int) {
	for _, field := range list.List {
		count += max(1, len(field.Names))
	}
	return count
}
