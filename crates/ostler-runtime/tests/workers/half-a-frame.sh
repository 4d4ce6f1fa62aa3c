# Writes the first bytes of a frame, then nothing more.
. "${0%/*}/base.sh"
say '{"type":"ready","wire":"binary"}'
printf '\144\0\0\0\204' >&3
exec sleep 600
