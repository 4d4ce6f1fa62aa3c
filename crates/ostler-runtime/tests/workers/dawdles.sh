# Takes a moment for each request, so that a kill finds it at work.
. "${0%/*}/base.sh"
vice() {
    sleep 0.05
    payload=${line#*'"payload":'}
    complete "${payload%'}'}"
}
serve
