# Its first process starts and never says so.
. "${0%/*}/base.sh"
[ "$OSTLER_GENERATION" -gt 1 ] || exec sleep 600
serve
