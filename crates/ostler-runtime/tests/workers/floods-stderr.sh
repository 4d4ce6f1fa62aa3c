# Writes 16 MiB to stderr before it answers.
. "${0%/*}/base.sh"
vice() {
    head -c 16777216 /dev/zero | tr '\0' x >&2
    complete '"dry"'
}
serve
