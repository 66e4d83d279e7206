#!/usr/bin/env bash
# Server CPU per request: runs a server on core 0, loads it from core 1, and divides the CPU time of
# all the server's processes by the number of answered requests. CPU per request is stable where
# requests per second are not.
#
#   cost.sh NAME URL CONNECTIONS SECONDS [-p DEPTH | -c CALLS | -d JSON | -n | -m STREAMS] [-b] -- SERVER COMMAND...
#
#   -p DEPTH   send DEPTH requests at once on each connection
#   -c CALLS   close each connection after CALLS requests (httperf); CONNECTIONS is then new ones per second
#   -d JSON    post JSON, as a page's script does (wrk)
#   -n         close each connection after one request, and open a new one (wrk)
#   -m STREAMS keep STREAMS requests of HTTP/2 open on each connection (h2load)
#   -b         give server and load both cores, and the load two threads
#
# Prints one line: NAME rps=.. p99=.. user=.. sys=.. total=.. us/request. Fails if any response was
# not a 200.
set -u
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
fail() { echo "cost.sh: $name: $*" >&2; exit 1; }
[[ $# -ge 6 ]] || usage
name=$1 url=$2 connections=$3 seconds=$4; shift 4
depth=1 calls=0 json= new=0 streams=0 server_cores=0 load_cores=1 threads=1
while getopts p:c:d:m:nb option; do
  case $option in
    p) depth=$OPTARG ;;
    c) calls=$OPTARG ;;
    d) json=$OPTARG ;;
    n) new=1 ;;
    m) streams=$OPTARG ;;
    b) server_cores=0,1 load_cores=0,1 threads=2 ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -gt 0 ]] || usage
for need in curl:curl ps:procps taskset:util-linux setsid:util-linux wrk:wrk httperf:httperf h2load:nghttp2-client; do
  command -v "${need%:*}" >/dev/null || fail "${need%:*} is missing: apt-get install ${need#*:}"
done
ulimit -n "$(ulimit -Hn)"

address=${url#http*://}; path=/${address#*/}; address=${address%%/*}
pid=; work=$(mktemp -d)
# The server leads its own session, so that its workers are counted and stopped with it; php-fpm begins
# another one.
other_sessions() { ps -o sid= --ppid "$pid" | tr -d ' ' | grep -vx "$pid" | paste -sd,; }
stop() {
  if [[ $pid ]]; then
    local others; others=$(other_sessions)
    [[ $others ]] && kill $(ps -o pid= -s "$others") 2>/dev/null
    kill -- -"$pid" 2>/dev/null
    for _ in $(seq 50); do kill -0 -- -"$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 -- -"$pid" 2>/dev/null; wait "$pid" 2>/dev/null
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM
post=() fields=()
[[ $json ]] && fields=(-H "Content-Type: application/json" -H "Accept: application/json" -H "Sec-Fetch-Site: same-origin") post=(-d "$json")
if curl -sk -o /dev/null "$url"; then fail "a server is already running at $url"; fi
setsid taskset -c "$server_cores" "$@" >"$work/log" 2>&1 & pid=$!
ready=; for _ in $(seq 100); do curl -sfk -o /dev/null "${fields[@]}" "${post[@]}" "$url" && ready=1 && break; sleep 0.05; done
[[ $ready ]] || fail "no response in 5 s: $(tail -n 3 "$work/log")"

printf 'init = function() local r = {} for i = 1, %d do r[i] = wrk.format("GET", "%s") end all = table.concat(r) end\nrequest = function() return all end\n' \
  "$depth" "$path" >"$work/pipeline.lua"
printf 'wrk.method = "POST"\nwrk.body = [[%s]]\n' "$json" >"$work/post.lua"
load() {
  if ((streams)); then
    taskset -c "$load_cores" h2load -t "$threads" -c "$connections" -m "$streams" -D "$1" "$url"
  elif ((calls)); then
    taskset -c "$load_cores" httperf --server "${address%:*}" --port "${address#*:}" --uri "$path" --timeout 5 \
      --num-conns $((connections * $1)) --num-calls "$calls" --rate "$connections"
  else
    local script=("${fields[@]}"); ((depth > 1)) && script=(-s "$work/pipeline.lua")
    [[ $json ]] && script+=(-s "$work/post.lua")
    ((new)) && script=(-H "Connection: close")
    taskset -c "$load_cores" wrk -t"$threads" -c"$connections" -d"$1" --latency "$url" "${script[@]}"
  fi 2>&1
}
# Ticks of 10 ms are too coarse for the sum, which is from the scheduler in nanoseconds; ticks only
# split it.
used() {
  local others; others=$(other_sessions)
  for p in $(ps -o pid= -s "$pid${others:+,$others}"); do
    sed 's/.*) //' "/proc/$p/stat" | awk '{print $12, $13, 0}'
    awk '{print 0, 0, $1}' /proc/"$p"/task/*/schedstat
  done 2>/dev/null | awk '{u += $1; s += $2; ns += $3} END {printf "%d %d %.0f\n", u, s, ns}'
}
load 1 >"$work/warm" || fail "the load failed: $(tail -n 3 "$work/warm")"
before=$(used); load "$seconds" >"$work/out" || fail "the load failed: $(tail -n 3 "$work/out")"; after=$(used)
awk -v name="$name" -v before="$before" -v after="$after" '
  /^finished in/             { rps = $4; p99 = "-" }                               # h2load
  /^requests: /              { n = $8; if ($10 + $12 + $14) bad = bad " [" $0 "]" }
  /^status codes: /          { if ($5 + $7 + $9) bad = bad " [" $0 "]" }
  / requests in /            { n = $1 }                                            # wrk
  /^Requests\/sec/           { rps = $2 }
  $1 == "99%"                { p99 = $2 }
  /Non-2xx|Socket errors/    { bad = bad " [" $0 "]" }
  /^Total: connections/      { n = $7 }                                            # httperf
  /^Request rate/            { rps = $3; p99 = "-" }
  /^Reply status/            { split($4, two, "="); ok = two[2]; if (ok != n) bad = bad " [" $0 "]" }
  /^Errors: total/ && $3 > 0 { bad = bad " [" $0 "]" }
  END { if (!n || bad) { print "cost.sh: " name ": not every response was a 200:" bad >"/dev/stderr"; exit 1 }
        split(before, b); split(after, a); u = a[1] - b[1]; s = a[2] - b[2]
        total = (a[3] - b[3]) / 1e3 / n; user = u + s ? total * u / (u + s) : 0
        printf "%-24s rps=%-10s p99=%-9s user=%.3f sys=%.3f total=%.3f us/request\n", name, rps, p99, user, total - user, total }' "$work/out"
