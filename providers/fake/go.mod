module github.com/millwright-dev/millwright/providers/fake

go 1.26.0

replace (
	github.com/millwright-dev/millwright/proto => ../../proto
	github.com/millwright-dev/millwright/sdk => ../../sdk
)
