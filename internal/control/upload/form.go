package upload

import (
	"context"
	"errors"
	"io"
	"mime/multipart"

	"puntuale"
)

// maxFormParts is how many parts of a form may stand before the file.
const maxFormParts = 20

// FirstFile returns the first file of a form.
func FirstFile(form *multipart.Reader) (*multipart.Part, error) {
	for range maxFormParts {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, FormFault(err)
		}
		if part.FileName() != "" {
			return part, nil
		}
	}
	return nil, puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: puntuale.FaultRequired})
}

const faultCallNoForm puntuale.ReasonCode = "call.no_form"

// FormFault returns the error of a form that cannot be read. Errors of the connection and of the service stay as they are.
func FormFault(err error) error {
	if _, known := errors.AsType[*puntuale.Error](err); known || errors.Is(err, context.Canceled) || errors.Is(err, puntuale.ErrStopping) {
		return err
	}
	return &puntuale.Error{Code: puntuale.CodeUnreadable, Faults: []puntuale.Fault{{Location: "body", Code: faultCallNoForm}}, Err: err}
}
