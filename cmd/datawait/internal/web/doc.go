// Package web answers over HTTP for an agent that is left running: its metrics, whether it is alive and ready, and a page for
// people. TLS and passwords are exporter-toolkit's (--web-config).
//
// Nothing here changes anything: there is no path that writes, and only GET and HEAD are answered. What is slow or too much on the other
// side costs a bounded number of connections and answers, never the sampling.
//
// Read [Config] and [Serve].
package web
