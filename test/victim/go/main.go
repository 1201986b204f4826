// SPDX-License-Identifier: MIT

// Victim in Go: counts its own calls while stacks grow, goroutines are preempted and the garbage
// collector looks at their stacks. SIGUSR1 begins the work, SIGTERM ends it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type counts struct{ leaf, checked, deep, sink uint64 }

// No stack check: it calls nothing. Its first instruction is long enough for a jump.
//
//go:noinline
func leaf(a, b uint64) uint64 { return a*0x12345 + b }

// The same with a frame.
//
//go:noinline
func framed(a uint64) uint64 {
	var x [6]uint64
	for i := range x {
		x[i] = a + uint64(i)
	}
	return x[a%6]
}

//go:noinline
func checked(a uint64) uint64 { return leaf(a, 3) + framed(a) }

// Each stack grows several times on the way down: morestack comes back to the entry.
//
//go:noinline
func deep(n int, pad [8]uint64) uint64 {
	if n == 0 {
		return pad[3]
	}
	pad[n&7]++
	return deep(n-1, pad) + pad[0]
}

func garbage() (b []byte) {
	for i := 0; i < 20; i++ {
		b = append([]byte{1}, make([]byte, 200)...)
	}
	return b
}

func work(stop *int32, c *counts, all *sync.WaitGroup) {
	defer all.Done()
	for i := uint64(0); atomic.LoadInt32(stop) == 0; i++ {
		c.sink += checked(i)
		c.checked++
		if i%64 == 0 {
			ch := make(chan uint64)
			go func() { ch <- deep(300, [8]uint64{1}) }()
			c.sink += <-ch + uint64(len(garbage()))
			c.deep += 301
		}
	}
}

func main() {
	var all sync.WaitGroup
	var stop int32
	var c [3]counts
	var sum counts
	begin, end := make(chan os.Signal, 1), make(chan os.Signal, 1)

	signal.Notify(begin, syscall.SIGUSR1)
	signal.Notify(end, syscall.SIGTERM)
	fmt.Println("ready")
	<-begin
	for i := range c {
		all.Add(1)
		go work(&stop, &c[i], &all)
	}
	go func() {
		for {
			runtime.GC()
			time.Sleep(2 * time.Millisecond)
		}
	}()
	<-end
	atomic.StoreInt32(&stop, 1)
	all.Wait()
	for _, x := range c {
		sum.checked += x.checked
		sum.deep += x.deep
	}
	fmt.Println("calls leaf", sum.checked)
	fmt.Println("calls framed", sum.checked)
	fmt.Println("calls checked", sum.checked)
	fmt.Println("calls deep", sum.deep)
	fmt.Println("self-check ok")
}
