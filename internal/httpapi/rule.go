package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
)

// triggerOf, conditionsOf and actionOf are the parts of an automation in answers. Package puntuale defines their JSON form. automation.go
// documents it.
type (
	triggerOf    struct{ puntuale.Trigger }
	conditionsOf struct{ puntuale.Conditions }
	actionOf     struct{ puntuale.Action }
)

// Schema tells huma what a trigger is.
func (triggerOf) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[triggerBody](), true, "")
}

// Schema tells huma what conditions are.
func (conditionsOf) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[conditionsBody](), true, "")
}

// Schema tells huma what an action is.
func (actionOf) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[actionBody](), true, "")
}
