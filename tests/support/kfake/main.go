// Brokers of another implementation of Kafka's protocol, kfake of franz-go, whose requests can be cut at will.
//
//	kfake [-brokers N] [-most KEY=VERSION,...]
//
// prints the brokers' addresses and serves until its standard input ends. A version of -1 takes a request away.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	brokers := flag.Int("brokers", 1, "number of brokers")
	most := flag.String("most", "", "highest versions served, KEY=VERSION,...; of a request that is not served -1")
	flag.Parse()
	versions := kversion.Tip()
	for _, each := range strings.FieldsFunc(*most, func(r rune) bool { return r == ',' }) {
		var key, version int16
		if _, err := fmt.Sscanf(each, "%d=%d", &key, &version); err != nil {
			log.Fatalf("kfake: -most %q: %v", each, err)
		}
		if version < 0 {
			versions.SetMaxKeyVersion(key, -1)
		} else {
			versions.SetMaxKeyVersion(key, version)
		}
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(*brokers),
		kfake.MaxVersions(versions),
		kfake.ClusterID(fmt.Sprintf("kfake-%d", os.Getpid())),
	)
	if err != nil {
		log.Fatalf("kfake: %v", err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
