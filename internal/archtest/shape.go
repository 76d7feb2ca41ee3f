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

// payers lists the configurations whose part reads answers of other servers. Their field Memory says who pays for the
// memory. Without it nobody would pay, so cmd must set it.
var payers = []string{"calendar.Config", "certificate.Config", "chatwoot.Config", "delivery.CallerConfig", "mail.Config", "official.Config", "push.Config", "sendapp.Config", "socket.Config"}

// checkShape counts the fields of structs, and the interfaces of the root. It finds transports that read headers without
// a bound, and readers of answers for which nobody pays.
func (c *checker) checkShape(name, folder string, parsed *ast.File, line func(token.Pos) int) {
	ast.Inspect(parsed, func(n ast.Node) bool {
		if made, ok := n.(*ast.CompositeLit); ok && readsOutside(name, folder) && isTransport(made.Type) && !sets(made, "MaxResponseHeaderBytes") {
			c.report(name, line(made.Pos()), "a transport must set MaxResponseHeaderBytes")
		}
		if made, ok := n.(*ast.CompositeLit); ok && strings.HasPrefix(folder, "cmd/") && slices.Contains(payers, selected(made.Type)) && !sets(made, "Memory") {
			c.report(name, line(made.Pos()), "%s must set Memory, or nobody pays for answers", selected(made.Type))
		}
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		switch shape := spec.Type.(type) {
		case *ast.StructType:
			if of := parsed.Name.Name + "." + spec.Name.Name; ast.IsExported(spec.Name.Name) && !slices.Contains(payers, of) && slices.ContainsFunc(shape.Fields.List, paysForAnswers) {
				c.report(name, line(spec.Pos()), "%s is not in the list of payers", of)
			}
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

func isTransport(of ast.Expr) bool { return selected(of) == "http.Transport" }

func paysForAnswers(field *ast.Field) bool { return selected(field.Type) == "outside.MemoryGrants" }

// selected returns "package.Name" for a type of another package, else "".
func selected(of ast.Expr) string {
	s, ok := of.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return fmt.Sprint(s.X) + "." + s.Sel.Name
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
