# Does not come up before there is a licence in the yard.
. "${0%/*}/base.sh"
[ -f "$YARD/licence" ] || exit 3
serve
