module github.com/millwright-dev/millwright/api

go 1.26.0
