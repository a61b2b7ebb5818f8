#!/bin/sh
# kcat against the Kafka listener: a program that checks itself.
#
#     client_kcat.sh HOST:PORT [USER TOKEN]
#
# Prints each check it has passed and exits 0, or says what differed and exits 1.

set -eu
broker=$1
name=kcat-$$-$(date +%s)
if [ $# -ge 3 ]; then
    set -- -X security.protocol=SASL_PLAINTEXT -X sasl.mechanisms=PLAIN -X "sasl.username=$2" -X "sasl.password=$3"
else
    set --
fi

ok() { echo "ok $*"; }
check() {
    [ "$2" = "$3" ] || { printf '%s: found\n%s\nexpected\n%s\n' "$1" "$2" "$3" >&2; exit 1; }
}
kcat_() { timeout 60 kcat -q -b "$broker" "$@"; }

kcat -V 2>&1 | grep -i '^version'

# The topic is made by its first use.
printf 'a:one\nb:two\nc:three\n' | kcat_ "$@" -P -t "$name" -K: -H source=kcat -H n=1
got=$(kcat_ "$@" -C -t "$name" -o beginning -e -f '%o %k %s %h\n')
check "records" "$got" "0 a one source=kcat,n=1
1 b two source=kcat,n=1
2 c three source=kcat,n=1"
ok "produced with keys and headers, consumed from the beginning"

for codec in gzip snappy lz4 zstd; do
    echo "$codec" | kcat_ "$@" -P -t "$name" -z "$codec"
done
got=$(kcat_ "$@" -C -t "$name" -o -4 -e -f '%s\n' | tr '\n' ' ')
check "compressions" "$got" "gzip snappy lz4 zstd "
ok "every compression"

echo idempotent | kcat_ "$@" -P -t "$name" -X enable.idempotence=true
got=$(kcat_ "$@" -C -t "$name" -o -1 -e)
check "idempotence" "$got" idempotent
ok "an idempotent producer"

got=$(kcat_ "$@" -Q -t "$name:0:-1")
check "the end" "$got" "$name [0] offset 8"
ok "offsets by place"

kcat_ "$@" -L -t "$name" | grep -q "1 partitions"
ok "metadata"

# A group: what is committed is not read again.
got=$(timeout 60 kcat -b "$broker" "$@" -G "group-$name" -X auto.offset.reset=earliest -e -f '%s\n' "$name" 2>/dev/null |
    tail -1)
check "the group" "$got" idempotent
echo later | kcat_ "$@" -P -t "$name"
got=$(timeout 60 kcat -b "$broker" "$@" -G "group-$name" -X auto.offset.reset=earliest -e -f '%s\n' "$name" 2>/dev/null)
check "the group after its return" "$got" later
ok "a group, whose committed offsets outlive its member"
echo "left $name"
