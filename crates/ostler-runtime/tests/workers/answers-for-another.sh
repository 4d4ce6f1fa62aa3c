# Answers a request that it never got.
. "${0%/*}/base.sh"
vice() { id=999; complete '"forged"'; }
serve
