# Starts a process that leaves its group and its descriptors, and tells its pid.
. "${0%/*}/base.sh"
vice() {
    setsid sh -c 'echo $$ >"$YARD/pid.new"; mv "$YARD/pid.new" "$YARD/pid"; exec sleep 600' \
        </dev/null >/dev/null 2>&1 3>&- 4>&- &
    until [ -f "$YARD/pid" ]; do sleep 0.01; done
    complete "$(cat "$YARD/pid")"
}
serve
