# A well-behaved worker of lines. A vice is what a script says before or beside it.
# Functions: `echo` and whatever the script defines as vice().
say() { printf '%s\n' "$1" >&3; }
complete() { say "{\"type\":\"complete\",\"requestId\":\"$id\",\"result\":$1}"; }
vice() { complete '"none"'; }
leave() { exit; }

serve() {
    say '{"type":"ready"}'
    while read -r line <&3; do
        id=${line#*'"requestId":"'}
        id=${id%%'"'*}
        case $line in
        *'"type":"shutdown"'*) leave ;;
        *'"function":"vice"'*) vice ;;
        *'"function":"echo"'*)
            payload=${line#*'"payload":'}
            complete "${payload%'}'}" ;;
        esac
    done
}
