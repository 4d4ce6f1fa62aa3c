# Says something before it is ready, in its first process.
. "${0%/*}/base.sh"
[ "$OSTLER_GENERATION" -gt 1 ] || say '{"type":"health_ok"}'
serve
