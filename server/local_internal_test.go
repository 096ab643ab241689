package server

import "testing"

func TestLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST": true, "bank.localhost:1": true, "127.0.0.1": true, "127.8.9.1:80": true, "[::1]": true, "[::1]:8080": true,
		"::1": true, "[::ffff:127.0.0.1]:80": true,
		"": false, "bank.example": false, "localhost.example": false, "localhost.": false, "127.0.0.1.example": false, "0.0.0.0": false, "10.0.0.1:80": false, "[::]": false,
		"[::1%lo]": false, "127.1": false, "2130706433": false, "localhost@bank.example": false, "notlocalhost": false, ":80": false,
	} {
		if got := loopbackHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func FuzzLoopbackHost(f *testing.F) {
	f.Add("localhost:80")
	f.Add("[::1]:80")
	f.Fuzz(func(_ *testing.T, host string) { loopbackHost(host) })
}
