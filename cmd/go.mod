module github.com/millwright-dev/millwright/cmd

go 1.26.0

replace (
	github.com/millwright-dev/millwright/api => ../api
	github.com/millwright-dev/millwright/core => ../core
	github.com/millwright-dev/millwright/localcluster => ../localcluster
	github.com/millwright-dev/millwright/proto => ../proto
	github.com/millwright-dev/millwright/providers/fake => ../providers/fake
	github.com/millwright-dev/millwright/sdk => ../sdk
)
