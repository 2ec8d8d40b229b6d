// Command pause is the first process of every Pod: it holds the Pod's namespaces, and reaps
// orphans where the Pod shares its process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	for {
		select {
		case <-stop:
			return
		case <-died:
			// One signal may stand for several children.
			for {
				if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
					break
				}
			}
		}
	}
}
