# Sourced by the scripts here, never run.

# Dask reads the configuration beside this file, unless DASK_CONFIG names another file, or a folder of them.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DASK_CONFIG="${DASK_CONFIG:-$here/dask.yaml}"

# Progress and results are not buried under what Dask says of its connections; info shows that, too.
export DASK_LOGGING__DISTRIBUTED="${DASK_LOGGING__DISTRIBUTED:-warning}"

# Seconds that a scheduler and its workers may take to start; a first import from a busy shared disk takes a minute.
patience=${PATIENCE:-180}

# Exit code 75 is "again": storage or the cluster was away for longer than dfeas waits, and there is a checkpoint. So often, and
# after so many seconds.
restarts=${MAX_RESTARTS:-100}
pause=${PAUSE:-60}

# Options that name the cluster, and the process of a scheduler that was started here.
where=()
scheduler=""

# A process group for each background process: Ctrl-C reaches this script only, which tells the driver.
set -m

# What drive leaves behind.
code=0
signalled=""

# drive COMMAND...: runs the driver, hands it every INT, TERM and USR1 that this script gets, and keeps its exit code in $code
# and the last signal in $signalled.
drive() {
    "$@" </dev/null &
    local driver=$! name
    for name in INT TERM USR1; do
        # shellcheck disable=SC2064  # the name and the process are those of now
        trap "signalled=$name; kill -$name $driver 2>/dev/null || true" "$name"
    done
    while kill -0 "$driver" 2>/dev/null; do
        wait "$driver" || true # a signal ends a wait early
    done
    code=0
    wait "$driver" || code=$?
    trap - INT TERM USR1
}

# state_of RUN: running, finished, resumable or abandoned, as dfeas status says; nothing where there is no run.
state_of() {
    dfeas status "$1" --json 2>/dev/null |
        python -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)[0]["state"])' 2>/dev/null || true
}

# run_in COMMAND...: the folder of the run in the words of a dfeas command; nothing where they name none.
run_in() {
    [ "$1" != resume ] || echo "${2:-}"
    while [ $# -gt 1 ]; do
        [ "$1" != --out ] || echo "$2"
        shift
    done
}

# persist RUN COMMAND...: drives a command. While that ends with 75 and nobody has asked it to end, waits and goes on with RUN.
persist() {
    local run=$1 times
    shift
    drive "$@"
    for ((times = 1; times <= restarts; times++)); do
        if [ "$code" != 75 ] || [ -n "$signalled" ] || [ "$(state_of "$run")" != resumable ]; then
            return
        elif [ -n "$scheduler" ] && ! kill -0 "$scheduler" 2>/dev/null; then
            echo "the Dask scheduler has ended; dfeas resume $run goes on, on another one" >&2
            return
        fi
        echo "$run: goes on in $pause s" >&2
        drive sleep "$pause"
        code=75
        [ -z "$signalled" ] || return 0
        drive dfeas resume "$run" "${where[@]}"
    done
}

# reach_verdict DATA RUN [OPTION]...: begins a run on the cluster of $where, goes on with it, or says that it is finished.
reach_verdict() {
    local data=$1 run=$2
    shift 2
    case "$(state_of "$run")" in
    finished) dfeas status "$run" ;;
    resumable) persist "$run" dfeas resume "$run" "${where[@]}" ;;
    *) persist "$run" dfeas solve "$data" --out "$run" "${where[@]}" "$@" ;;
    esac
}

# stop PID...: ends background processes of this script one after the other, and whatever they started, within seconds.
stop() {
    local pid tries
    for pid in "$@"; do
        kill -TERM "$pid" 2>/dev/null || true
        for ((tries = 0; tries < 50; tries++)); do
            kill -0 -- "-$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# wait_for_file FILE PID: until the process has written it; fails when the process ends, or takes too long.
wait_for_file() {
    local tries
    for ((tries = 0; tries < 10 * patience; tries++)); do
        [ -s "$1" ] && return
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    echo "the Dask scheduler did not start" >&2
    return 1
}

# wait_for_workers ADDRESS N: until N worker processes are there; fails when they take too long.
wait_for_workers() {
    python - "$1" "$2" "$patience" <<'PYTHON'
import sys

from distributed import Client

address, wanted, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    client = Client(address, timeout=patience)
except OSError as error:
    sys.exit(f"no Dask scheduler answers at {address}: {error}; see the messages above")
with client:
    try:
        client.wait_for_workers(wanted, timeout=patience)
    except TimeoutError:
        sys.exit(f"only {len(client.nthreads())} of {wanted} workers came within {patience} s; see the messages above")
PYTHON
}

# address_in FILE: the address in a scheduler file.
address_in() {
    python -c 'import json, sys; sys.stdout.write(json.load(open(sys.argv[1]))["address"])' "$1"
}

# warn_of ADDRESS: says so when others can reach a scheduler without a certificate.
warn_of() {
    case "$1" in
    tcp://127.* | "tcp://[::1]"* | tls://*) ;;
    *) echo "WARNING: whoever reaches $1 runs code as $(id -un): make certificates, see cluster/README.md" >&2 ;;
    esac
}
