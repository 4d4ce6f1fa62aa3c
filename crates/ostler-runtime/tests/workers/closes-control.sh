# Has no use for its control stream and closes it.
. "${0%/*}/base.sh"
exec 4>&-
serve
