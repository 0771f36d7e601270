module github.com/millwright-dev/millwright/localcluster

go 1.26.0

replace github.com/millwright-dev/millwright/proto => ../proto
