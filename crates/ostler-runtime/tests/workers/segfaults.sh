# Dies as native code does.
. "${0%/*}/base.sh"
vice() { kill -SEGV $$; }
serve
