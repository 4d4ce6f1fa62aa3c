# Answers with something that is not JSON.
. "${0%/*}/base.sh"
vice() { say 'Traceback (most recent call last):'; }
serve
