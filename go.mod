module github.com/datawait/datawait

go 1.26.8
