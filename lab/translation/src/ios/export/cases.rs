//! Chains as the lines `set`, `police` and `drop` of the classes of a policy map.

use super::Exporter;
use super::normal::{as_cases, without_effect};
use crate::ios::matching::access::printed_dscp;
use router::policy::{ChainStep, ClassSteps, MeterAction, MeterProfile, OctetSize};
use router::time::Rate;
use std::ops::RangeInclusive;

/// The octets of a burst of `police`, as Cisco's command references have them for most releases.
const POLICE_BURST: RangeInclusive<u64> = 1_000..=512_000_000;
/// The rates of `police`, in bits a second.
const POLICE_RATE: RangeInclusive<u64> = 8_000..=64_000_000_000;

/// A case of a first-match step, and the path of its steps without their numbers.
pub(super) struct Case {
    pub(super) of: ClassSteps,
    pub(super) path: String,
}

/// The lines of a class for its steps.
#[derive(Default)]
pub(super) struct StepLines {
    pub(super) lines: Vec<String>,
    /// The cases of the service policy of the class.
    pub(super) inner: Vec<Case>,
}

/// The cases of a first-match step at this path.
pub(super) fn cases_at(classes: &[ClassSteps], path: &str) -> Vec<Case> {
    let case = |(place, of): (usize, &ClassSteps)| Case {
        of: of.clone(),
        path: format!("{path}.classes[{place}].steps"),
    };
    classes.iter().enumerate().map(case).collect()
}

impl Exporter<'_> {
    /// The cases of a chain; `None` if it cannot be a policy map.
    pub(super) fn chain(&mut self, steps: &[ChainStep], path: &str) -> Option<Vec<Case>> {
        let before = self.faults.len();
        match (steps, as_cases(steps)) {
            (_, Some(cases)) if without_effect(&cases) => {
                self.fault(
                    path,
                    "a policy map that does nothing is not read back: leave the chain out",
                );
                None
            }
            ([ChainStep::FirstMatch { classes }], _) => {
                Some(cases_at(classes, &format!("{path}[0]")))
            }
            (_, Some(cases)) => {
                let case = |of: ClassSteps| Case { of, path: path.to_owned() };
                Some(cases.into_iter().map(case).collect())
            }
            (steps, None) => {
                for (number, step) in steps.iter().enumerate() {
                    self.step(step, &format!("{path}[{number}]"), &mut StepLines::default());
                }
                if self.faults.len() == before {
                    let what = "a packet goes through several steps, in IOS through those of the \
                        first class that it matches: write the chain as one first-match step";
                    self.fault(path, what);
                }
                None
            }
        }
    }

    /// The lines of the steps of a case. IOS does them in one order: those of the service policy,
    /// the mark, the meter.
    pub(super) fn steps(&mut self, steps: &[ChainStep], path: &str) -> StepLines {
        let mut done = StepLines::default();
        let mut last = 0;
        for (number, step) in steps.iter().enumerate() {
            let path = format!("{path}[{number}]");
            let place = match step {
                ChainStep::FirstMatch { .. } => 1,
                ChainStep::Mark { .. } => 2,
                ChainStep::Meter { .. } => 3,
                _ => 4,
            };
            if place <= last {
                let what = "IOS does the steps of a class in one order, each once: first-match, \
                    mark, meter";
                self.fault(format!("{path}.kind"), what);
            }
            if matches!(step, ChainStep::Drop { .. }) && number > 0 {
                self.fault(
                    format!("{path}.kind"),
                    "IOS drops a class at once: leave the steps before it out",
                );
            }
            last = place;
            self.step(step, &path, &mut done);
            if let Some(class) = class_in_case(step) {
                let what = format!(
                    "a case has one class: put the step into a first-match step with the class \
                     {class}"
                );
                self.fault(format!("{path}.class"), what);
            }
        }
        done
    }

    fn step(&mut self, step: &ChainStep, path: &str, into: &mut StepLines) {
        let kind = match step {
            ChainStep::Mark { dscp, .. } => {
                into.lines.push(format!("set dscp {}", printed_dscp(*dscp)));
                return;
            }
            ChainStep::Drop { .. } => {
                into.lines.push("drop".to_owned());
                return;
            }
            ChainStep::Meter { meter, green, yellow, red, .. } => {
                if let Some(line) = self.police(meter, [*green, *yellow, *red], path) {
                    into.lines.push(line);
                }
                return;
            }
            ChainStep::FirstMatch { classes } => {
                into.inner = cases_at(classes, path);
                return;
            }
            ChainStep::Demote(_) => "demote",
            ChainStep::MarkFlows { .. } => "mark-flows",
            ChainStep::MeterFlows { .. } => "meter-flows",
            ChainStep::ShapeFlows { .. } => "shape-flows",
            ChainStep::Shape { .. } => "shape",
        };
        let help = match step {
            ChainStep::Shape { .. } => "; IOS shapes a class in a queueing",
            ChainStep::Demote(_) => "",
            _ => "; IOS has classes, and no tables of flows",
        };
        self.fault(format!("{path}.kind"), format!("IOS has no step {kind:?}{help}"));
    }

    /// The `police` line of a meter.
    fn police(
        &mut self,
        meter: &MeterProfile,
        actions: [MeterAction; 3],
        path: &str,
    ) -> Option<String> {
        let meter_path = format!("{path}.meter");
        let (mut line, colour_aware, has_yellow) = match meter {
            MeterProfile::TokenBucket { rate, burst } => {
                let burst = self.burst(*burst, &format!("{meter_path}.burst"));
                let rate = self.rate(*rate, &format!("{meter_path}.rate"));
                (format!("police cir {rate} bc {burst}"), false, false)
            }
            MeterProfile::SingleRate { cir, cbs, ebs, colour_aware } => {
                let cbs = self.burst(*cbs, &format!("{meter_path}.cbs"));
                let ebs = self.burst(*ebs, &format!("{meter_path}.ebs"));
                let cir = self.rate(*cir, &format!("{meter_path}.cir"));
                (format!("police cir {cir} bc {cbs} be {ebs}"), *colour_aware, true)
            }
            MeterProfile::TwoRate { cir, cbs, pir, pbs, colour_aware } => {
                let cbs = self.burst(*cbs, &format!("{meter_path}.cbs"));
                let pbs = self.burst(*pbs, &format!("{meter_path}.pbs"));
                let cir = self.rate(*cir, &format!("{meter_path}.cir"));
                let pir = self.rate(*pir, &format!("{meter_path}.pir"));
                (format!("police cir {cir} bc {cbs} pir {pir} be {pbs}"), *colour_aware, true)
            }
        };
        if colour_aware {
            let what = "IOS meters a packet as if it had no colour before: leave it out";
            self.fault(format!("{meter_path}.colour_aware"), what);
        }
        let [green, yellow, red] = actions;
        let conform = self.action(green, &format!("{path}.green"))?;
        line.push_str(&format!(" conform-action {conform}"));
        if has_yellow {
            let exceed = self.action(yellow, &format!("{path}.yellow"))?;
            let violate = self.action(red, &format!("{path}.red"))?;
            line.push_str(&format!(" exceed-action {exceed} violate-action {violate}"));
        } else {
            let exceed = self.action(red, &format!("{path}.red"))?;
            line.push_str(&format!(" exceed-action {exceed}"));
        }
        Some(line)
    }

    /// The octets of a burst.
    fn burst(&mut self, burst: OctetSize, path: &str) -> u64 {
        self.within(burst.0, &POLICE_BURST, path, "octets");
        burst.0
    }

    /// The bits a second of a rate.
    fn rate(&mut self, rate: Rate, path: &str) -> u64 {
        self.within(rate.bits(), &POLICE_RATE, path, "bit/s");
        rate.bits()
    }

    /// A number outside of what IOS has is a fault.
    pub(super) fn within(
        &mut self,
        number: u64,
        range: &RangeInclusive<u64>,
        path: &str,
        unit: &str,
    ) {
        if !range.contains(&number) {
            let (least, most) = (range.start(), range.end());
            self.fault(path, format!("{number} {unit}: in IOS {least} to {most}"));
        }
    }

    fn action(&mut self, action: MeterAction, path: &str) -> Option<String> {
        match action {
            MeterAction::Pass => Some("transmit".to_owned()),
            MeterAction::Drop => Some("drop".to_owned()),
            MeterAction::Mark(dscp) => Some(format!("set-dscp-transmit {}", printed_dscp(dscp))),
            MeterAction::DropPrecedence => {
                let what = "IOS sets one code point: write { mark = \"AF12\" } in a class for each \
                    AF class";
                self.fault(path, what);
                None
            }
        }
    }
}

/// The class of a step, which a case has not.
fn class_in_case(step: &ChainStep) -> Option<&str> {
    match step {
        ChainStep::Mark { class, .. }
        | ChainStep::Drop { class }
        | ChainStep::Meter { class, .. } => class.as_deref(),
        _ => None,
    }
}
