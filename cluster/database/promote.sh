#!/bin/sh
# promote.sh: makes a standby the primary after the loss of the primary, and the others follow it.
#
#   promote.sh --old NAME (--old-url CONNINFO | --old-gone) [--old-data DIRECTORY] [--alone] [--single]
#       NAME=CONNINFO...
#
# For a primary with `synchronous_standby_names = 'ANY 1 (...)'`, where each server is in that list
# under its `application_name`, here NAME. The servers that are given are all the others. CONNINFO is
# how a superuser reaches that server from here, and how the other standbys reach it: without a
# password, which belongs in a .pgpass file on each machine. With three servers s0, s1 and s2, of
# which s0 is lost:
#
#   promote.sh --old s0 --old-url 'host=db0 dbname=mta user=postgres' \
#       s1='host=db1 dbname=mta user=postgres' s2='host=db2 dbname=mta user=postgres'
#
# What it does, and why:
#
# 1. It refuses where the old primary still answers, as a primary or with an error of its own (a password, a
#    certificate): such a server runs. Stop it first (`pg_ctl stop -m immediate`), or take it from the network.
#    It refuses too while a standby hears from a primary: then --old-url is that of another server, or of none. After a
#    cut of the network a standby has heard nothing for 10 s first.
#    `--old-gone` asks nothing: you know that it does not run.
# 2. It detaches all standbys from the old primary. From then on no commit there is acknowledged, even
#    where it still runs behind a cut network: `ANY 1` waits for a standby that it no longer has. This
#    is the fence. (A client must not set `synchronous_commit` below `on`, and has to take the warning
#    "canceling wait for synchronous replication" for an outcome that it does not know.)
# 3. It compares how far they have received the log. `ANY 1` means that a commit may be on one of them
#    only, so the one that has most is promoted, never another. Where one does not answer, it may be
#    that one: the script refuses. `--alone` promotes all the same, and may lose what was acknowledged.
# 4. The new primary waits for one of the other servers from its first commit on: its
#    `synchronous_standby_names` are set before the promotion. Where no other server is left, nothing is
#    acknowledged until the old one is back as a standby; with `--single` it waits for nobody, and what is
#    acknowledged then is on that one server.
# 5. The others follow the new primary: with the CONNINFO of the new primary, so the role that it names
#    needs a line `host replication ROLE ADDRESS METHOD` in the pg_hba.conf of each server, and its
#    password in the .pgpass of each standby. The script waits until the new primary shows each of them
#    in pg_stat_replication.
#
# The old primary must not come back as a primary. `--old-data` writes standby.signal into its data
# directory, where that is on this machine: then it can start as a standby only. On another machine do
# that by hand, or keep its service disabled. To bring it back, stop it in order and run `pg_rewind
# --target-pgdata DIRECTORY --source-server CONNINFO --write-recovery-conf` (it takes `wal_log_hints =
# on`), or remove its data and take a new `pg_basebackup --write-recovery-conf`; then set its
# `primary_conninfo` with `application_name`, and start it.
#
# Prints what it does on standard error and `promoted NAME` on standard output. Ends with 0; 2 for
# wrong arguments; 3 where it refuses; 4 where the promotion is done, and a standby does not follow the
# new primary or there is none; 1 where something failed. It may be run again after a failure.
# PSQL names another `psql`.

set -eu
psql=${PSQL:-psql}
old= old_url= old_gone= old_data= alone= single=
names=
limit=60
follows=20

fail() { code=$1; shift; echo "promote.sh: $*" >&2; exit "$code"; }
note() { echo "promote.sh: $*" >&2; }

# A statement on a server; variables of psql as further arguments.
ask() {
    url=$1 sql=$2
    shift 2
    printf '%s\n' "$sql" | "$psql" -X -w -A -t -q -v ON_ERROR_STOP=1 "$@" \
        -d "$url connect_timeout=5 options='-c statement_timeout=70s -c synchronous_commit=local'" -f -
}

# The conninfo of a server by its name.
url_of() { eval "printf '%s' \"\$url_$1\""; }

while [ $# -gt 0 ]; do
    case $1 in
        --old|--old-url|--old-data)
            [ $# -ge 2 ] || fail 2 "$1 needs a value" ;;
    esac
    case $1 in
        --old) old=$2; shift 2 ;;
        --old-url) old_url=$2; shift 2 ;;
        --old-data) old_data=$2; shift 2 ;;
        --old-gone) old_gone=yes; shift ;;
        --alone) alone=yes; shift ;;
        --single) single=yes; shift ;;
        --*) fail 2 "unknown option $1" ;;
        *=*)
            name=${1%%=*}
            case $name in *[!a-z0-9_]*|'') fail 2 "'$name' is not of a-z, 0-9 and _" ;; esac
            names="$names $name"
            eval "url_$name=\${1#*=}"
            shift ;;
        *) fail 2 "'$1' is not NAME=CONNINFO" ;;
    esac
done
[ -n "$old" ] && [ -n "$names" ] || fail 2 "--old NAME and the other servers are needed"

# 1. The old primary.
if [ -n "$old_url" ]; then
    case $(LC_ALL=C ask "$old_url" 'select pg_is_in_recovery()' 2>&1) in
        f) fail 3 "$old still answers as a primary: stop it first (pg_ctl stop -m immediate)" ;;
        # It is a standby already, or nothing runs there.
        t|*'Connection refused'*|*'No such file or directory'*) ;;
        *'timeout expired'*|*'timed out'*|*'No route to host'*|*'Network is unreachable'*) ;;
        *)
            LC_ALL=C ask "$old_url" 'select 1' >/dev/null || true
            fail 3 "whether $old runs is not known: mend that, or, once you know that it does not run, give --old-gone"
            ;;
    esac
elif [ -z "$old_gone" ]; then
    fail 2 "give --old-url, at which $old is asked whether it runs, or --old-gone: you know that it does not"
fi
# Whether a standby has heard from a primary lately. Where one of these servers is the primary already, this script ran before.
hears() {
    for name in $names; do
        [ "$(ask "$(url_of "$name")" 'select pg_is_in_recovery()' 2>/dev/null)" != f ] || return 1
    done
    for name in $names; do
        from=$(ask "$(url_of "$name")" "select sender_host || ' port ' || sender_port from pg_stat_wal_receiver
            where status = 'streaming' and last_msg_receipt_time > clock_timestamp() - interval '10 s'" 2>/dev/null) || true
        [ -z "$from" ] || { hearer=$name; return 0; }
    done
    return 1
}
if [ -z "$old_gone" ]; then
    tries=0
    while hears; do
        [ $tries -gt 0 ] || note "$hearer has heard from the primary at $from within 10 s: waiting whether it hears more"
        tries=$((tries + 1))
        [ $tries -lt 24 ] || fail 3 "$hearer receives the log of a primary at $from: it runs, whatever --old-url reaches; stop it first, or take it from the network"
        sleep 0.5
    done
fi

if [ -n "$old_data" ]; then
    touch "$old_data/standby.signal"
    chown --reference="$old_data" "$old_data/standby.signal"
    note "$old can only start as a standby now"
fi

# 2. The fence: no standby listens to it any longer.
here=
for name in $names; do
    if ask "$(url_of "$name")" "alter system set primary_conninfo = ''; select pg_reload_conf();" >/dev/null
    then
        here="$here $name"
    elif [ -z "$alone" ]; then
        fail 3 "$name does not answer, and may have commits that no other standby has"
    else
        note "$name does not answer, and is left out: what only it has is lost"
    fi
done
[ -n "$here" ] || fail 1 "no standby answers"

# Received and flushed, or read from its own disk after a restart, in octets; nothing while it still
# receives or has not applied all.
position="select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn
    where not exists (select from pg_stat_wal_receiver)
    and pg_last_wal_replay_lsn() >= coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())"

# The same where the log ends within a record, as it does when its primary is killed: the rest never comes, and it is
# applied up to there. $1 is how far it was applied a while ago.
torn_position() {
    printf '%s' "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn
        where not exists (select from pg_stat_wal_receiver) and pg_last_wal_replay_lsn() = '$1'"
}

# 3. The one that has most.
winner= most=-1
for name in $here; do
    tries=0 at= applied=
    while [ -z "$at" ]; do
        # A server that a script before this one has promoted is the one.
        if [ "$(ask "$(url_of "$name")" 'select pg_is_in_recovery()')" = f ]; then
            at=9223372036854775807
        else
            at=$(ask "$(url_of "$name")" "$position")
        fi
        [ -n "$at" ] && break
        tries=$((tries + 1))
        # Every 5 s: whether it has applied nothing more for that long.
        if [ $((tries % 50)) -eq 0 ]; then
            [ $tries -gt 50 ] || note "$name still applies the log, or it ends within a record: waiting, at most $limit s"
            [ -z "$applied" ] || at=$(ask "$(url_of "$name")" "$(torn_position "$applied")")
            [ -n "$at" ] && break
            applied=$(ask "$(url_of "$name")" 'select pg_last_wal_replay_lsn()')
        fi
        [ $tries -lt $((limit * 10)) ] || fail 1 "$name still receives or applies the log"
        sleep 0.1
    done
    if [ "$at" = 9223372036854775807 ]; then
        note "$name is the primary already"
    else
        note "$name has the log up to $at"
    fi
    if [ "$at" -gt "$most" ]; then winner=$name most=$at; fi
done

# 4. The new primary, and whom it waits for.
list=$old
waits=
for name in $names; do
    [ "$name" = "$winner" ] || list="$list, $name"
done
[ -n "$single" ] || waits="ANY 1 ($list)"
ask "$(url_of "$winner")" "alter system set synchronous_standby_names = :'names';
    select pg_reload_conf();" -v names="$waits" >/dev/null
done_=$(ask "$(url_of "$winner")" \
    "select case when pg_is_in_recovery() then pg_promote(true, $limit) else true end")
[ "$done_" = t ] || fail 1 "$winner was not promoted within $limit s"
if [ -n "$single" ]; then
    note "$winner is the primary, and waits for no standby: what is acknowledged is on it alone"
else
    note "$winner is the primary, and waits for $waits"
fi

# 5. The others.
for name in $here; do
    [ "$name" != "$winner" ] || continue
    ask "$(url_of "$name")" "alter system set primary_conninfo = :'primary';
        select pg_reload_conf();" \
        -v primary="$(url_of "$winner") application_name=$name connect_timeout=3" >/dev/null
done
missing=
for name in $here; do
    [ "$name" != "$winner" ] || continue
    tries=0
    until [ "$(ask "$(url_of "$winner")" "select exists (select from pg_stat_replication
        where application_name = :'name' and state in ('catchup', 'streaming'))" -v name="$name")" = t ]
    do
        tries=$((tries + 1))
        if [ $tries -ge $((follows * 10)) ]; then
            missing="$missing $name"
            break
        fi
        sleep 0.1
    done
    case " $missing " in
        *" $name "*) note "$name does not follow $winner: its own log has the reason" ;;
        *) note "$name follows $winner" ;;
    esac
done
# The checkpoint after a promotion takes minutes. Until it ends, the files of the new primary name the old time line, and
# pg_rewind of the old primary finds nothing to do.
ask "$(url_of "$winner")" checkpoint >/dev/null ||
    note "there is no checkpoint yet: before pg_rewind of $old, run \`checkpoint\` on $winner"
echo "promoted $winner"
if [ -z "$single" ] && [ "$here" = " $winner" ]; then
    fail 4 "no server follows $winner: nothing is acknowledged until $old is back as a standby, or run this again with --single"
fi
if [ -n "$missing" ]; then
    note "see in pg_hba.conf of $winner that it permits replication, and .pgpass of$missing; run this again then"
    fail 4 "$winner is the primary, and these do not follow it:$missing"
fi
