module bank.example/mirror

go 1.26
