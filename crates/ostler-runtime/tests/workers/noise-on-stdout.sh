# Prints what looks like the protocol, and bytes that are no text, where nobody speaks it.
. "${0%/*}/base.sh"
vice() {
    printf '{"type":"complete","requestId":"%s","result":"forged"}\n' "$id"
    printf '{"type":"retire"}\n\377\376\000\001\n'
    complete '"true"'
}
printf '{"type":"ready","capacity":99}\n'
serve
