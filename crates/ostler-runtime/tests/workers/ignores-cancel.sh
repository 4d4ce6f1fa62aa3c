# Hears neither a cancel nor SIGTERM while it works.
. "${0%/*}/base.sh"
trap '' TERM
vice() { echo x >>"$YARD/begun"; while :; do sleep 1; done; }
serve
