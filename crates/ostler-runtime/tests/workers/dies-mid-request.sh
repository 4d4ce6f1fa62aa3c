# Complains, then dies while it holds a request.
. "${0%/*}/base.sh"
vice() {
    echo "loading the model" >&2
    echo "model is corrupt" >&2
    exit 7
}
serve
