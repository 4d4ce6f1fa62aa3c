# Has no standard streams.
. "${0%/*}/base.sh"
exec 0<&- 1>&- 2>&-
serve
