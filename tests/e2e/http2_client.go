// SPDX-License-Identifier: MIT

// Go's client of HTTP/2 for tests/e2e/test_http2_clients.py. It prints for each request its path,
// the version, the status and the bytes of the body. Arguments: URL CERTIFICATE.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
	read := func(path string, answer *http.Response, err error) string {
		check(err)
		defer answer.Body.Close()
		count, err := io.Copy(io.Discard, answer.Body)
		check(err)
		return fmt.Sprintln(path, answer.Proto, answer.StatusCode, count)
	}
	var lines [52]string
	var group sync.WaitGroup
	for i := range lines {
		path := "/hello.txt"
		if i == 50 {
			path = "/big.bin"
		} else if i == 51 {
			path = "/nothing"
		}
		group.Add(1)
		go func() {
			defer group.Done()
			answer, err := client.Get(os.Args[1] + path)
			lines[i] = read(path, answer, err)
		}()
	}
	group.Wait()
	for _, line := range lines {
		fmt.Print(line)
	}
	for i := 0; i < 3; i++ {
		body := bytes.NewReader(make([]byte, 3_000_000)) // above the server's limit
		answer, err := client.Post(os.Args[1]+"/", "application/octet-stream", body)
		fmt.Print(read("/", answer, err))
	}
}
