package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Unused returns the entries of the two tables that no file of a module's tree uses, sorted. Without such entries the
// tables are a map of the module. An entry for a package of this module must name an imported package itself, not only a
// folder above it. The imports of tests do not count, because the tables do not limit them.
func Unused(tree fs.FS, rules []Rule, owners map[string][]string) ([]string, error) {
	imports, err := importsByFolder(tree)
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, rule := range rules {
		unused = append(unused, unusedOfRule(rule, rules, owners, imports)...)
	}
	for library, folders := range owners {
		for _, owner := range folders {
			if !owns(owner, library, imports) {
				unused = append(unused, fmt.Sprintf("%s is an owner of %s, but no file of it imports the library", owner, library))
			}
		}
	}
	slices.Sort(unused)
	return unused, nil
}

// importsByFolder returns all imports of the files that are not tests. A folder that imports nothing, or has only tests,
// has an empty list.
func importsByFolder(tree fs.FS) (map[string][]string, error) {
	imports := map[string][]string{}
	err := walk(tree, func(name string, source []byte) error {
		folder := path.Dir(name)
		if _, ok := imports[folder]; !ok {
			imports[folder] = nil
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		for _, spec := range parsed.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("parse %s: %w", name, err)
			}
			imports[folder] = append(imports[folder], target)
		}
		return nil
	})
	return imports, err
}

// unusedOfRule compares one row with the imports of the folders for which it is the best match.
func unusedOfRule(rule Rule, rules []Rule, owners map[string][]string, imports map[string][]string) (unused []string) {
	matches, used := false, map[string]bool{"...": true}
	for folder, targets := range imports {
		if best, _ := ruleFor(rules, folder); best.Package != rule.Package {
			continue
		}
		matches = true
		if exempt(folder, rule) {
			continue
		}
		for _, target := range targets {
			own, isOwn, isLibrary := kind(target)
			switch {
			case isOwn && !below(own, folder): // no row needs to allow what is inside the package
				used[own] = true
			case isLibrary && !owned(target, owners):
				used["*"] = true
				for _, library := range rule.Library {
					used[library] = used[library] || below(target, library)
				}
			}
		}
	}
	if !matches {
		return []string{fmt.Sprintf("%s has a row in the import table, but there is no such package", rule.Package)}
	}
	for _, entry := range slices.Concat(rule.Module, rule.Library) {
		if !used[entry] {
			unused = append(unused, fmt.Sprintf("%s may import %s, but no file does", rule.Package, entry))
		}
	}
	return unused
}

// owned reports whether Owners decides about an import, so that a row's "*" does not cover it.
func owned(target string, owners map[string][]string) bool {
	for library := range owners {
		if below(target, library) {
			return true
		}
	}
	return false
}

// owns reports whether a package of the product, which is the owner or below it, imports a library.
func owns(owner, library string, imports map[string][]string) bool {
	for folder, targets := range imports {
		if below(folder, owner) && !testPackage(folder) && slices.ContainsFunc(targets, func(t string) bool { return below(t, library) }) {
			return true
		}
	}
	return false
}
