# Answers a request, and once more.
. "${0%/*}/base.sh"
vice() { complete 1; complete 2; }
serve
