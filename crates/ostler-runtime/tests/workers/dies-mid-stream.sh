# Dies after three chunks.
. "${0%/*}/base.sh"
vice() {
    for n in 0 1 2; do say "{\"type\":\"message\",\"requestId\":\"$id\",\"content\":$n}"; done
    exit 1
}
serve
