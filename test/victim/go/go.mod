module victim

go 1.18
