module github.com/millwright-dev/millwright/proto

go 1.26.0
