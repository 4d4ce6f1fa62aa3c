# A server of its own in a directory of its own: `serve BINARY` starts one with functions.py as pool
# `work` and a pool `spare`, and sets `url` once it is ready. Whatever happens, the server is ended and its directory removed.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
site=
server=

leave() {
    local code=$?
    trap - EXIT
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null
        wait "$server" || { echo "the server did not end well"; tail -n 20 "$site/log"; code=1; }
    fi
    [ -z "$site" ] || rm -rf "$site"
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT TERM

# The binary: the one named, else the one that was built last.
binary() {
    local found=${1:-${CARGO_TARGET_DIR:-$root/target}/debug/ostler}
    if [ ! -x "$found" ]; then
        echo "there is no $found; build it with: cargo build -p ostler" >&2
        return 1
    fi
    realpath "$found"
}

serve() {
    site=$(mktemp -d "${TMPDIR:-/tmp}/ostler-api.XXXXXX") || return
    cp "$here/functions.py" "$site/work.py"
    cp "$here/spare.py" "$here/ostler.toml" "$site"
    (cd "$site" && exec "$1" serve --listen 127.0.0.1:0) >"$site/log" 2>&1 &
    server=$!
    local _
    for _ in $(seq 300); do
        url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$site/log" | head -n 1)
        [ -n "$url" ] && ready "$url" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server did not become ready:"
    cat "$site/log"
    return 1
}

ready() {
    python3 - "$1" 2>/dev/null <<'END'
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + "/readyz", timeout=5)
END
}
