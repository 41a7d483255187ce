//! What IOS has not.

use super::*;

/// The places and the texts of all faults.
fn faults(text: &str) -> Vec<(usize, String)> {
    let file = PolicyFile::parse("p.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let names = InterfaceNames::new(file.policy(), &[]).unwrap();
    let faults = export(file.policy(), "p.toml", &names).expect_err(text);
    faults.iter().map(|fault| file.mistake(fault)).map(|at| (at.line, at.to_string())).collect()
}

/// Policies, apart by empty lines. A line with a fault has a part of its text as a comment. A policy
/// that begins with a word in brackets has what [`before`] gives for it.
const REFUSED: &str = r#"
[tables.t]                                                      # no tables of flows
flows = []

[interfaces]
'*' = {}                                                        # name each of them

[classes]
'a b' = { match = [{}] }                                        # a name in IOS is 1 to 40
Type = { match = [{}] }                                         # type is a word of IOS
class-default = { match = [{}] }                                # class-default is a word of IOS

[classes.a]
match = [{ protocol = 'tcp' },
    { destination_port = 5 }]                                   # one of them as the protocol

[classes.a]
match = [{ protocol = 'tcp' },
    { interface = 'w', protocol = 'udp' }]                      # only in a class of one match

[classes.a]
match = [{ interface = 'w', protocol = 'udp' }]                 # addresses of one family

(queueing)
kind = 'priority'                                               # no scheduler "priority"
branches = [{ queueing = { kind = 'fifo', limit = { packets = 5,
    octets = 5 } } }]                                           # one limit

(queueing)
kind = 'weighted-fair'                                          # weights does the same
branches = [{ class = 'a' }]

(queueing)
kind = 'round-robin'                                            # no scheduler "round-robin"
branches = [{ class = 'a' }]

(queueing)
kind = 'fifo'
limit = { delay = ['25ms', '5Mbit'] }                           # octets: octets = 15625
dropper = { kind = 'push-out' }                                 # no dropper "push-out"

(queueing)
kind = 'fifo'
dropper = { kind = 'thresholds', packets = {} }                 # no dropper "thresholds"

(queueing)
kind = 'fifo'
dropper = { kind = 'wred', lines = {} }                         # for every code point

(queueing)
kind = 'fair-flows'
by_precedence = false                                           # by their precedence
queues = 5000                                                   # up to 4096

(queueing)
kind = 'fair-flows'
queues = 100                                                    # 16, 32, 64

(queueing)
kind = 'fifo'
limit = { octets = 64000 }                                      # in one unit
dropper = { kind = 'red', line = { min = 10, max = 30, denominator = 5 } }

(queueing)
kind = 'shaper'
rate = '1Mbit'
burst = 0                                                       # 3125 octets that an interval
interval = '25ms'
overhead = 14                                                   # counts what its link has
child = { kind = 'fifo' }

(queueing)
kind = 'shaper'
rate = '999999bit'
burst = '5kB'
interval = '1234567ns'                                          # whole number of bits
child = { kind = 'fifo' }

(branches)
branches = [{ class = 'a', share = { weight = 0.5 } },          # ratios of 1 to 1000
    { class = 'b', share = { weight = 1001 } }]                 # ratios of 1 to 1000

(branches)
branches = [{ class = 'a', share = { percent = 0 } }]           # 1 to 100 percent

(branches)
branches = [{ class = 'a', share = { bandwidth = '64500bit' } }]    # whole kbit/s

(branches)
branches = [{ class = 'a' },
    { share = { priority = { rate = '64kbit' } } }]             # give these packets a class

(branches)
branches = [{ class = 'a', share = { percent = 5 } },
    { class = 'b', share = { weight = 5 } }]                    # one unit

(branches)
branches = [{},                                                 # put the branch of all other
    { class = 'b', share = { weight = 5 } }]

(branches)
branches = [{}]                                                 # queueing of the branch alone

(branches)
branches = [{ class = 'a', share = { priority = { rate = '64kbit' } },
    queueing = { kind = 'fair-flows' } }]                       # one queue with tail drop

(chain)
kind = 'mark-flows'                                             # no step "mark-flows"
table = 't'
[tables.t]                                                      # no tables of flows

(chain)
kind = 'shape'                                                  # shapes a class in a queueing
rate = '1Mbit'
burst = '5kB'
limit = 5

(chain)
kind = 'demote'                                                 # no step "demote"
af_class = 1
rates = ['1Mbit', '1Mbit', '1Mbit']
burst = '5kB'

(chain)
kind = 'meter'
[chains.c.meter]
kind = 'two-rate'
cir = '7kbit'                                                   # 7000 bit/s: in IOS 8000 to
cbs = 999                                                       # 999 octets: in IOS 1000 to
pir = '1Mbit'
pbs = '600MB'                                                   # 1000 to 512000000

(branches)
branches = [{ class = 'a', share = { priority = { rate = '64kbit',
    burst = '3MB' } } }]                                        # 3000000 octets: in IOS 32 to

(chain)
kind = 'meter'
red = 'drop-precedence'                                         # IOS sets one code point
[chains.c.meter]
kind = 'single-rate'
cir = '1Mbit'
cbs = '5kB'
ebs = '5kB'
colour_aware = true                                             # as if it had no colour

(chain)
kind = 'first-match'
[[chains.c.classes]]
class = 'a'
steps = [{ kind = 'meter', meter = { kind = 'token-bucket', rate = '1Mbit', burst = '5kB' } },
    { kind = 'mark', dscp = 'EF' }]                             # in one order

(chain)
kind = 'first-match'
[[chains.c.classes]]
class = 'a'
steps = [{ kind = 'mark', dscp = 'EF' },
    { kind = 'drop' }]                                          # drops a class at once
[[chains.c.classes]]
class = 'b'
steps = [{ kind = 'mark', class = 'b', dscp = 'EF' }]           # a case has one class

[chains]
c = [{ kind = 'mark', dscp = 'EF' }]                            # rename one of them
d = [{ kind = 'first-match', classes = [{}] }]                  # does nothing
[queueings.c]
kind = 'fifo'

[classes]
a = { match = [{ dscp = ['EF'] }] }
[chains]
c = [                                                           # as one first-match step
    { kind = 'mark', class = 'a', dscp = 'CS1' },
    { kind = 'drop' },
]

[chains]
c = [{ kind = 'mark', dscp = 'EF' }]
d = [{ kind = 'drop' }]
[queueings.q]
kind = 'fifo'
[interfaces.w]
input = ['c', 'd']                                              # one policy map at an input
output = ['c']                                                  # name the chain q too
queueing = 'q'

[queueings.q]
kind = 'class-based'
rate = '1Mbit'                                                  # no interface uses this queueing
branches = [{ share = { weight = 5 } }]

[queueings.q]                                                   # write rate = "1544kbit"
kind = 'class-based'
branches = [{ share = { weight = 5 } }]
[interfaces.Serial0]
queueing = 'q'

[queueings.q]
kind = 'fifo'
limit = { packets = 0 }                                         # must be 1 to
"#;

/// What stands before a policy of [`REFUSED`] that begins with this word.
fn before(word: &str) -> String {
    let classes =
        "[classes]\na = { match = [{ dscp = ['EF'] }] }\nb = { match = [{ dscp = ['CS1'] }] }\n";
    match word {
        "(queueing)" => format!("[interfaces.w]\nqueueing = 'q'\n{classes}[queueings.q]\n"),
        "(branches)" => before("(queueing)") + "kind = 'class-based'\nrate = '1Mbit'\n",
        "(chain)" => format!("[interfaces.w]\ninput = ['c']\n{classes}[[chains.c]]\n"),
        other => other.to_owned() + "\n",
    }
}

#[test]
fn there_is_nothing_to_export_of_an_empty_policy() {
    for empty in ["", "about = 'x'\n", "[interfaces]\nlan = {}\n"] {
        let [(_, what)] = &faults(empty)[..] else { panic!("{empty}") };
        assert!(what.contains("nothing in it for a configuration"), "{what}");
    }
}

#[test]
fn what_ios_has_not_is_a_fault_at_its_key() {
    for policy in REFUSED.trim().split("\n\n") {
        let (first, rest) = policy.split_once('\n').unwrap();
        let text = before(first) + rest;
        let expected = text.lines().enumerate();
        let expected = expected.filter_map(|(n, line)| Some((n + 1, line.split_once(" # ")?.1)));
        let expected: Vec<(usize, &str)> = expected.collect();
        let mut found = faults(&text);
        found.sort();
        assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
        for ((line, what), (at, part)) in found.iter().zip(expected) {
            assert!(*line == at && what.contains(part), "{at}: {part}\n{text}\n{found:#?}");
        }
    }
}

/// These are not for IOS, and each fault has its line.
#[test]
fn the_shipped_policies_are_refused_with_all_their_faults() {
    for (name, least) in [
        ("bern-ef-af", 11),
        ("bern-interior", 8),
        ("degeb-core", 6),
        ("degeb-edge", 9),
        ("nato-single-queue-ordered", 3),
        ("nato-single-queue-wred", 3),
        ("nato-three-queues", 4),
        ("plain", 1),
    ] {
        let path = config().join(format!("policies/{name}.toml"));
        let found = faults(&std::fs::read_to_string(path).unwrap());
        assert!(found.len() >= least, "{name}: {found:#?}");
        assert!(found.iter().all(|(line, _)| *line > 0), "{name}: {found:#?}");
    }
}

/// A packet that is queued by its new mark here and by the old one in IOS.
#[test]
fn what_ios_does_otherwise_is_a_fault_at_the_policy_map() {
    let text = "[classes]\na = { match = [{ dscp = ['EF'] }] }\n\
        b = { match = [{ dscp = ['CS1'] }] }\n\
        [chains]\nq = [{ kind = 'mark', class = 'b', dscp = 'EF' }]\n\
        [queueings.q]\nkind = 'class-based'\n\
        branches = [{ class = 'a', share = { weight = 5 } }]\n\
        [interfaces.w]\noutput = ['q']\nqueueing = 'q'\n";
    let found = faults(text);
    assert!(
        found
            .iter()
            .all(|(line, what)| *line == 5 && what.contains("marked EF before it is queued")),
        "{found:#?}"
    );
}
