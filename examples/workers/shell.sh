#!/bin/sh
# A worker in POSIX sh and awk: no JSON library, no network tool, one call at a time.
#
# The stream is descriptor 3 (OSTLER_FD). A shell cannot connect to a socket by its name, so this
# worker needs the inherited one, which is what a pool gives unless it is told otherwise.
# Standard output stays free: echo what you like.
[ "$OSTLER_FD" = 3 ] || { echo "shell.sh needs its stream as descriptor 3" >&2; exit 2; }

say() { printf '%s\n' "$1" >&3; }

# Cuts a line of JSON into the texts of four keys, one per line, empty if absent. Only keys of the
# outermost object count: a payload may hold the same words. awk walks over strings and brackets,
# and takes a key where a string is followed by a colon at depth 1.
fields() {
    awk '{
        depth = 0; key = ""; at = 0; rest = $0; passed = 0
        while (match(rest, /"([^"\\]|\\.)*"|[][{}:,]/)) {
            token = substr(rest, RSTART, RLENGTH); here = passed + RSTART
            passed += RSTART + RLENGTH - 1; rest = substr(rest, RSTART + RLENGTH)
            if (depth == 1 && key != "" && (token == "," || token == "}"))
                { value[key] = substr($0, at, here - at); key = ""; last = "" }
            if (token == "{" || token == "[") depth++
            else if (token == "}" || token == "]") depth--
            else if (token == ":" && depth == 1 && key == "") { key = last; at = here + 1 }
            else last = token
        }
        print value["\"type\""]; print value["\"requestId\""]
        print value["\"function\""]; print value["\"payload\""]
    }'
}

# One function is one branch; $payload is JSON text, and so is what `complete` is given.
answer() {
    case $function in
    '"echo"') complete "${payload:-null}" ;;
    '"date"') complete "\"$(date -u +%FT%TZ)\"" ;;
    '"count"')
        n=0
        while [ "$n" -lt 3 ]; do
            say "{\"type\":\"message\",\"requestId\":$id,\"content\":$n}"
            n=$((n + 1))
        done
        complete null ;;
    *) say "{\"type\":\"error\",\"requestId\":$id,\"error\":{\"code\":\"function_not_found\",\"message\":\"no such function\",\"started\":false}}" ;;
    esac
}
complete() { say "{\"type\":\"complete\",\"requestId\":$id,\"result\":$1}"; }

say '{"type":"ready","functions":[{"name":"echo"},{"name":"date"},{"name":"count","streaming":true}]}'
while IFS= read -r line <&3; do
    # A here-document keeps the variables in this shell; a pipe into `read` would lose them.
    { IFS= read -r type; IFS= read -r id; IFS= read -r function; IFS= read -r payload; } <<END
$(printf '%s\n' "$line" | fields)
END
    case $type in
    '"query"') answer ;;
    '"health_check"') say '{"type":"health_ok"}' ;;
    '"shutdown"') say '{"type":"shutdown_ack"}'; exit 0 ;;
    esac # all else is ignored: a cancel comes when the call is over, a later version may say more
done
