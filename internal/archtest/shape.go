package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

// Largest numbers of fields and methods of a type. An embedded type counts as one field. Methods of embedded interfaces
// do not count.
const (
	maxFields  = 20 // a struct with more fields probably describes two things
	maxMethods = 7  // an interface describes one role; a type may implement several interfaces
)

// narrow lists the folders whose structs must have at most maxFields fields. It includes the folders below them.
var narrow = []string{"internal/dispatch"}

// checkShape counts the fields of structs and the methods of interfaces.
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
			count := 0
			for _, method := range shape.Methods.List {
				count += len(method.Names)
			}
			if count > maxMethods {
				c.report(name, line(spec.Pos()), "%s has %d methods, %d are allowed: split it by role", spec.Name.Name, count, maxMethods)
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
