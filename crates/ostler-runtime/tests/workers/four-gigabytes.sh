# Announces a frame of 4 GiB, in its first process.
. "${0%/*}/base.sh"
[ "$OSTLER_GENERATION" -eq 1 ] || serve
say '{"type":"ready","wire":"binary"}'
printf '\377\377\377\377' >&3
exec sleep 600
