// Package template fills in files and units that an operator writes as templates. It is pure.
//
// document.go is where to begin: Parse reads a document of files and units, Render fills them in.
// Each content is a template of its own (text/template). What an action prints is not written into
// the text: a marker is, which has letters and digits only (actions.go, markers.go). A check of the
// format says whether each marker stands where a value may stand (formats.go, shell.go), and only
// then are markers replaced by values, quoted for the format. So no value can leave its place.
package template
