//! The `console` blocks of pages, played: their commands in order against two real daemons, and each output compared
//! with the page. `UPDATE=1` writes outputs that differ into the pages, `UPDATE=all` all of them.

use super::checkout;
use super::normal::{difference, normal};
use super::session::Session;
use bytes::Bytes;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A command of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Command {
    /// What happens before it: names of [`EVENTS`].
    after: Vec<String>,
    /// As a reader types it; several lines where one ends in a backslash, or the next begins with `> `.
    text: String,
    /// The lines of the page after it, from this one on, counted from 0.
    from: usize,
    output: Vec<String>,
}

/// What happens on the pages where they have a comment with the name: `<!-- act stops -->`. A script each.
const EVENTS: &[(&str, &str)] = &[
    ("act stops", "stop act; refused"),
    ("act starts", "start act; open"),
    ("the channels are open", "open"),
    (
        "a message was delivered",
        "send priority 'ALL WELL' --content-identifier ORDER-1
         xuxa --profile act receive --count 1 --timeout 10 >/dev/null
         soon 'confirmed by act' mta trace ORDER-1
         soon 'delivered' mta trace ORDER-1 --config act.toml",
    ),
    (
        "a message for act",
        "send routine 'MEETING AT NOON' --content-identifier ORDER-2
         soon 'no connection' mta queue show e2
         soon 'waits here' mta trace ORDER-2",
    ),
    (
        "another message for act",
        "send routine 'COME BACK' --content-identifier ORDER-3
         soon 'no connection' mta queue show e3",
    ),
    ("nothing waits for act", "gone ' act ' mta queue"),
    (
        "rome is in the file",
        r#"cp naples.toml without-rome.toml
         sed -n '/^\[\[peer\]\]/,$p' naples.toml | sed -e 's/"act"/"rome"/; s/MTA-ACT/MTA-ROME/' \
             -e 's/"127.0.0.1:5\([01]\)/"127.0.0.1:6\1/' >rome.part
         { cat rome.part
         printf '[[route]]\naddress = "/C=IT/ADMD=NET/PRMD=ROME"\nvia = "rome"\n'; } >>naples.toml"#,
    ),
    ("rome is in the file no longer", "cp without-rome.toml naples.toml"),
    (
        "two messages for act",
        "send routine 'ATTACK AT DAWN' --content-identifier ORDER-4
         send routine 'RADIO SILENCE' --content-identifier ORDER-5",
    ),
    ("ORDER-4 is tracked", "soon 'delivered  e8' mta trace ORDER-4"),
    ("ORDER-6 is tracked", "soon 'Known here: cancelled' mta trace ORDER-6"),
    ("STAFF-1 is tracked", "soon 'confirmed by act' mta trace STAFF-1"),
    ("ACT-1 is tracked", "soon redirected mta trace ACT-1"),
    ("ROME-1 is tracked", "soon '; reported' mta trace ROME-1"),
    ("MARS-1 is tracked", "soon '; reported' mta trace MARS-1"),
    ("OPS takes his deliveries", "xuxa receive >/dev/null"),
    (
        "a message for rome",
        "xuxa send --to '/C=IT/ADMD=NET/PRMD=ROME/S=OPS' --text HELLO --content-identifier ROME-1 >/dev/null",
    ),
    ("the port of act is wrong", r#"change 's/5100"/5199"/'; refused_on routine"#),
    ("the port of act is right", r#"file 's/5199"/5100"/'"#),
    (
        "the password for act is wrong",
        r#"mkdir secrets; (umask 077; echo wrong >secrets/naples)
         change 's|env = "MTA_PASSWORD_NAPLES"|file = "secrets/naples"|'; refused_on routine"#,
    ),
    ("the password for act is right", "(umask 077; echo vesuvio >secrets/naples)"),
    (
        "the name of naples is wrong",
        r#"change 's/^# own_name = "MTA-NAPLES" /own_name = "MTA-NAPOLI" /'; refused_on routine
         soon busy mta channel connect act/routine; sleep 0.1"#,
    ),
    (
        "the name of naples is right",
        r#"change 's/^own_name = "MTA-NAPOLI" /# own_name = "MTA-NAPLES" /'
         mta reload --config act.toml >/dev/null; open"#,
    ),
    ("the report is back", "soon ' received  e2' mta trace NOBODY-1
         soon '; reported' mta trace NOBODY-1 --config act.toml
         soon 'transfer confirmed' mta trace NOBODY-1 --config act.toml"),
    (
        "routine is disabled",
        "xuxa receive >/dev/null; mta channel disable act/routine >/dev/null
         send routine HELLO",
    ),
    (
        "flash cannot be sent",
        "mta channel disable act/flash >/dev/null; send flash 'MOVE NOW'; send routine HELLO
         gone routine mta queue",
    ),
    (
        "the disk is full",
        "stop naples; mv data/naples data/kept; mkdir -m 700 data/naples
         mount -t tmpfs -o size=64M,mode=700 tmpfs data/naples; cp -a data/kept/. data/naples/
         start naples; open
         head -c 100000000 /dev/zero >data/naples/filler 2>/dev/null; truncate -s -6M data/naples/filler
         soon 'priority and lower are refused' mta status",
    ),
    ("the disk has room", "rm data/naples/filler; gone refused mta status"),
    (
        "the clock went back by two hours",
        r#"stop naples; rm -r data/naples/queue; cp -r "$CHECKOUT/played/queue" data/naples/queue
         start naples"#,
    ),
    ("OPS has another password", "(umask 077; echo wrong >~/.config/xuxa/naples.password)"),
    ("OPS has the old password", "(umask 077; echo 'new password' >~/.config/xuxa/naples.password)"),
    (
        "DUTY has a mailbox",
        "echo 'on duty' | mta user add /C=IT/ADMD=NET/PRMD=NAPLES/S=DUTY >/dev/null 2>&1",
    ),
    ("naples stops", "stop naples"),
    (
        "naples starts and sends",
        "naples=$!; soon ' at 20' mta status; open; send flash 'MOVE NOW'
         gone ' act ' mta queue; sleep 0.1",
    ),
    ("naples starts", "naples=$!; soon ' at 20' mta status"),
];

/// The functions of the scripts, and both sites as docs/operating.md makes them.
const SITES: &str = r#"
export PATH="$BUILT:$PATH" MTA_PASSWORD_NAPLES=vesuvio MTA_PASSWORD_ACT=etna COLUMNS=80 LC_ALL=C
export MTA_CONFIG=/tmp/sites/naples.toml
cp -r config/sites /tmp/sites
cd /tmp/sites
mkdir -p ~/.config/xuxa
cp "$CHECKOUT/config/xuxa/config.toml" ~/.config/xuxa/
(umask 077; echo 'a password' >~/.config/xuxa/naples.password; echo another >~/.config/xuxa/act.password)
echo 'a password' | mta user add --config naples.toml /C=IT/ADMD=NET/PRMD=NAPLES/S=OPS
echo another | mta user add --config act.toml /C=IT/ADMD=NET/PRMD=ACT/S=OPS
ACT=/C=IT/ADMD=NET/PRMD=ACT/S=OPS NAPLES=/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS
# soon WORDS COMMAND: until its output has the words
soon() { local words=$1 seen; shift
    for i in $(seq 1200); do seen=$("$@" 2>&1); case $seen in *"$words"*) return;; esac; sleep 0.05; done
    echo "no \"$words\" in: $*" >&2; echo "$seen" >&2; exit 1; }
# gone WORDS COMMAND: until it has them no more
gone() { local words=$1 seen; shift
    for i in $(seq 1200); do seen=$("$@" 2>&1); case $seen in *"$words"*) sleep 0.05;; *) return;; esac; done
    echo "still \"$words\" in: $*" >&2; echo "$seen" >&2; exit 1; }
start() { mta run --config $1.toml 2>>$1.log & eval "$1=$!"; soon ' at 20' mta status --config $1.toml; }
stop() { kill ${!1}; wait ${!1}; }
open() { for channel in routine priority immediate flash override; do
    soon 'open' mta channel connect act/$channel --config naples.toml
    soon 'open' mta channel connect naples/$channel --config act.toml; done
    gone closed channels act naples.toml; gone closed channels naples act.toml; }
# file SCRIPT: edits the file of naples; change SCRIPT: and reloads it
file() { sed -i -e "$1" naples.toml; }
change() { file "$1"; mta reload >/dev/null; }
# refused_on CHANNEL: until it has no association
refused_on() { soon closed channels "act  *$1" naples.toml; }
# channels PEER FILE: their rows in the status
channels() { mta --wide status --config $2 | grep "^$1 "; }
# send PRECEDENCE TEXT [OPTION...]: from OPS of NAPLES to OPS of ACT
send() { local precedence=$1 text=$2; shift 2
    xuxa send --to $ACT --precedence $precedence --text "$text" "$@" >/dev/null; }
# refused: until each channel of naples has found nobody
refused() { for channel in routine priority immediate flash override; do
    soon refused channels "act  *$channel" naples.toml; done; }
start naples; start act; open
played() { local code=$? text; text=$(cat "$CHECKOUT/played/$1.command"); (exit $code)
    eval "$text" >"$CHECKOUT/played/$1.output" 2>&1; }
"#;

/// The commands of the page's blocks.
fn commands(page: &str) -> Vec<Command> {
    let (mut after, mut inside, mut goes_on) = (vec![], false, false);
    let mut found: Vec<Command> = Vec::new();
    for (number, line) in page.lines().enumerate() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (false, _) => {
                let comment = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
                after.extend(comment.map(str::to_owned));
            }
            (true, "```") => inside = false,
            (true, _) => {
                if let Some(text) = line.strip_prefix("$ ") {
                    let (after, text) = (std::mem::take(&mut after), text.to_owned());
                    found.push(Command { after, text, from: number + 1, output: vec![] });
                } else {
                    let last = found.last_mut().expect("a block begins with a command");
                    let typed = line.strip_prefix("> ");
                    let line = typed.unwrap_or(line);
                    if goes_on || typed.is_some() {
                        last.text = format!("{}\n{line}", last.text);
                        last.from = number + 1;
                    } else {
                        last.output.push(line.to_owned());
                    }
                }
                goes_on = line.ends_with('\\');
            }
        }
    }
    found
}

/// The script of an event.
fn script(name: &str) -> &'static str {
    let found = EVENTS.iter().find(|(of, _)| *of == name);
    found.unwrap_or_else(|| panic!("no event is named {name:?}")).1
}

/// A queue whose last run had a clock two hours ahead: no process has a wall clock of its own that could be set.
fn queue_of_a_later_time(directory: &Path) {
    let store = store::open(directory, store::Options::default()).unwrap();
    // The time now: its directory was just made.
    let made = directory.metadata().unwrap().modified().unwrap();
    let ahead = made + Duration::from_secs(7_200);
    let ahead = ahead.duration_since(UNIX_EPOCH).unwrap().as_micros();
    let value = Bytes::copy_from_slice(&u64::try_from(ahead).unwrap().to_be_bytes());
    let name = node::wall::CLOCK.to_owned();
    let noted = vec![engine::journal::Op::PutMeta { name, value }];
    store::queue::commit_one(&*store, store::BatchId(1), noted).unwrap();
    store.close();
}

/// Plays a page, and compares.
fn play(name: &str) {
    let file = checkout().join(name);
    let page = std::fs::read_to_string(&file).unwrap();
    let all = commands(&page);
    assert!(!all.is_empty(), "{name} has no console block");
    let Some(mut session) = Session::new(&checkout(), name) else { return };
    let played = session.directory().join("played");
    std::fs::create_dir(&played).unwrap();
    queue_of_a_later_time(&played.join("queue"));
    session.quietly(SITES);
    for (at, command) in all.iter().enumerate() {
        let shown = command.text.replace('\'', "'\\''");
        session.quietly("code=$?");
        for event in &command.after {
            session.quietly(&format!("echo '+ {event}' >&2\n{}", script(event)));
        }
        std::fs::write(played.join(format!("{at}.command")), &command.text).unwrap();
        session.quietly(&format!("echo '+ {shown}' >&2\n(exit $code)\nplayed {at}"));
    }
    session.quietly("true");
    session.run();
    let output = |at: usize| std::fs::read_to_string(played.join(format!("{at}.output"))).unwrap();
    let outputs: Vec<String> = (0..all.len()).map(output).collect();
    let update = std::env::var("UPDATE").unwrap_or_default();
    let (differences, page) = compare(name, &page, &all, &outputs, update == "all");
    if matches!(update.as_str(), "1" | "all") {
        std::fs::write(file, page).unwrap();
    } else {
        let what = "- the page, + the real output; UPDATE=1 writes it into the page";
        assert!(differences.is_empty(), "{what}\n{differences}");
    }
}

/// What differs between page and outputs, and the page with those outputs that do, or with all.
fn compare(
    name: &str,
    page: &str,
    all: &[Command],
    outputs: &[String],
    is_rewritten: bool,
) -> (String, String) {
    let mut differences = String::new();
    let mut lines: Vec<&str> = page.lines().collect();
    for (command, real) in all.iter().zip(outputs).rev() {
        let (shown, found) = (normal(&command.output.join("\n")), normal(real));
        if shown != found {
            let head = format!("{name}:{}: $ {}\n", command.from, command.text);
            differences.insert_str(0, &(head + &difference(&shown, &found)));
        }
        if shown != found || is_rewritten {
            let range = command.from..command.from + command.output.len();
            lines.splice(range, real.trim_end().lines().map(str::trim_end));
        }
    }
    (differences, lines.join("\n") + "\n")
}

#[test]
fn tasks() {
    play("docs/tasks.md");
}

#[test]
fn troubleshooting() {
    play("docs/troubleshooting.md");
}

/// Every page with a block is played, and every event happens.
#[test]
fn no_page_is_left_out_and_no_event_is_stale() {
    let has = |(_, text): &(String, String)| text.lines().any(|line| line == "```console");
    let pages: Vec<_> = super::page::pages(&checkout()).into_iter().filter(has).collect();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["docs/tasks.md", "docs/troubleshooting.md"]);
    let all: Vec<Command> = pages.iter().flat_map(|(_, text)| commands(text)).collect();
    for (name, _) in EVENTS {
        let happens = all.iter().any(|command| command.after.iter().any(|event| event == name));
        assert!(happens, "no page has {name:?}");
    }
}

#[test]
fn commands_have_their_outputs() {
    let page = "# One\n<!-- act stops -->\n```console\n$ a \\\n  b\nx\n\ny\n$ c\n```\n```text\n$ d\n```\n\
                ```console\n$ e\n> f\nz\n```\n";
    let command = |after: &[&str], text: &str, from, output: &[&str]| Command {
        after: after.iter().map(|event| (*event).to_owned()).collect(),
        text: text.to_owned(),
        from,
        output: output.iter().map(|line| (*line).to_owned()).collect(),
    };
    let all = [
        command(&["act stops"], "a \\\n  b", 5, &["x", "", "y"]),
        command(&[], "c", 9, &[]),
        command(&[], "e\nf", 16, &["z"]),
    ];
    assert_eq!(commands(page), all);
}

#[test]
fn another_word_is_a_difference() {
    let page = "```console\n$ a\none  4 s\nheld\n```\n";
    let real = "one  5 s\nready\n".to_owned();
    let (differences, updated) = compare("p", page, &commands(page), &[real], false);
    assert_eq!(differences, "p:2: $ a\n      one  DURATION\n    - held\n    + ready\n");
    assert_eq!(updated, "```console\n$ a\none  5 s\nready\n```\n");
    let same = "one  5 s\nheld\n\n".to_owned();
    let (differences, updated) =
        compare("p", page, &commands(page), std::slice::from_ref(&same), false);
    assert_eq!((differences.as_str(), updated.as_str()), ("", page));
    let (differences, updated) = compare("p", page, &commands(page), &[same], true);
    assert_eq!((differences.as_str(), updated), ("", page.replace("4 s", "5 s")));
}
