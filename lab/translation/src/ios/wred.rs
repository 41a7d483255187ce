//! `random-detect` lines.

use super::matching::access::{dscp, precedence_number, printed_dscp};
use dscp::Dscp;
use router::policy::{Dropper, WredLine};
use std::collections::BTreeMap;

/// The `random-detect` lines of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WredLines {
    by_dscp: bool,
    dscps: BTreeMap<Dscp, WredLine>,
    precedences: BTreeMap<u8, WredLine>,
    exponent: Option<u8>,
    ecn: bool,
}

/// IOS's default maximum and denominator.
const MAX: u32 = 40;
const DENOMINATOR: u32 = 10;
/// IOS's default minimum for code points without one of their own.
const MIN: u32 = 20;

/// IOS's default minima by code point, for `random-detect dscp-based`.
const MINIMA: [(u8, u32); 20] = [
    (8, 22),
    (16, 24),
    (24, 26),
    (32, 28),
    (40, 30),
    (48, 32),
    (56, 34),
    (46, 36),
    (10, 32),
    (12, 28),
    (14, 24),
    (18, 32),
    (20, 28),
    (22, 24),
    (26, 32),
    (28, 28),
    (30, 24),
    (34, 32),
    (36, 28),
    (38, 24),
];

fn default_line(min: u32) -> WredLine {
    WredLine { min, max: MAX, denominator: DENOMINATOR }
}

impl WredLines {
    /// Reads the words after `random-detect`.
    pub(super) fn read(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [] | ["prec-based" | "precedence-based"] => {}
            ["dscp-based"] => self.by_dscp = true,
            ["ecn"] => self.ecn = true,
            ["exponential-weighting-constant", exponent] => {
                let exponent = exponent.parse().ok().filter(|e| (1..=16).contains(e));
                self.exponent = Some(exponent.ok_or("the constant is 1 to 16")?);
            }
            ["dscp", code, rest @ ..] => {
                self.dscps.insert(dscp(code)?, line(rest)?);
                self.by_dscp = true;
            }
            ["precedence", "rsvp", ..] => return Err("RSVP is not mapped".to_owned()),
            ["precedence", number, rest @ ..] => {
                self.precedences.insert(precedence_number(number)?, line(rest)?);
            }
            [other, ..] => return Err(format!("{other:?} is not mapped")),
        }
        Ok(())
    }

    /// The dropper with IOS's defaults written out, and its highest maximum.
    pub(super) fn dropper(&self) -> (Dropper, u32) {
        let mut lines: BTreeMap<Dscp, WredLine> = BTreeMap::new();
        let others;
        if self.by_dscp {
            for (number, min) in MINIMA {
                lines.extend(Dscp::new(number).map(|dscp| (dscp, default_line(min))));
            }
            // Code points without a drop function use that of code point 0.
            let default = self.dscps.get(&Dscp::CS0).copied();
            others = default.unwrap_or_else(|| default_line(MIN));
            lines.extend(&self.dscps);
        } else {
            let of = |number: u8| {
                let printed = self.precedences.get(&number).copied();
                printed.unwrap_or_else(|| default_line(MIN + 2 * u32::from(number)))
            };
            for dscp in (8..64).filter_map(Dscp::new) {
                lines.insert(dscp, of(dscp.number() / 8));
            }
            others = of(0);
        }
        let highest = lines.values().map(|line| line.max).fold(others.max, u32::max);
        let (weight_exponent, ecn) = (self.exponent, self.ecn);
        (Dropper::Wred { lines, others: Some(others), weight_exponent, ecn }, highest)
    }
}

/// The `random-detect dscp` lines for these drop functions of all code points: those that differ
/// from what [`WredLines::dropper`] has without them.
pub(super) fn printed(functions: &BTreeMap<Dscp, WredLine>) -> Vec<String> {
    let others = functions.get(&Dscp::CS0).copied().unwrap_or_else(|| default_line(MIN));
    let own = |dscp: Dscp| {
        let mut minima = MINIMA.iter().filter(|(number, _)| *number == dscp.number());
        let min = minima.next().map(|(_, min)| *min);
        let min = min.or((dscp == Dscp::CS0).then_some(MIN));
        min.map_or(others, default_line)
    };
    let differing = functions.iter().filter(|(dscp, line)| **line != own(**dscp));
    differing
        .map(|(dscp, WredLine { min, max, denominator })| {
            format!("random-detect dscp {} {min} {max} {denominator}", printed_dscp(*dscp))
        })
        .collect()
}

fn line(words: &[&str]) -> Result<WredLine, String> {
    let numbers: Result<Vec<u32>, _> = words.iter().map(|word| word.parse::<u32>()).collect();
    let (min, max, denominator) = match numbers.as_deref() {
        Ok([min, max]) => (*min, *max, DENOMINATOR),
        Ok([min, max, denominator]) => (*min, *max, *denominator),
        _ => return Err("a line has MIN MAX [DENOMINATOR], in packets".to_owned()),
    };
    if min > max || denominator == 0 || denominator > 65_536 || max > 1_000_000 {
        return Err("MIN must not be above MAX, and DENOMINATOR is 1 to 65536".to_owned());
    }
    Ok(WredLine { min, max, denominator })
}
