module github.com/millwright-dev/millwright/core

go 1.26.0

replace (
	github.com/millwright-dev/millwright/api => ../api
	github.com/millwright-dev/millwright/proto => ../proto
)
