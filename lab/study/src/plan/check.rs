//! Checks of a study's file.

use super::Planned;
use crate::StudyError;
use crate::file::{
    Environments, Expect, Protocol, Study, StudyLoad, StudyMessage, StudyRun, StudyStart,
};
use crate::row::{LESS_THAN, MORE_THAN, Measure};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most runs of a study.
pub(super) const MAX_RUNS: usize = 10_000;
/// Most messages of a run.
const MAX_MESSAGES: usize = 10_000;
/// Most loads of a run.
const MAX_LOADS: usize = 64;
/// Most panels of a figure.
const MAX_PANELS: usize = 4;

/// Most that a clock may be made to do.
const MAX_CLOCK: f64 = 10_000.0;

/// Names of experiments and runs.
pub(super) fn study(study: &Study) -> Result<(), StudyError> {
    let mut names = BTreeSet::new();
    for (number, experiment) in study.experiments.iter().enumerate() {
        let path = format!("experiment[{number}]");
        if !is_name(&experiment.name) {
            return Err(StudyError::at(format!("{path}.name"), NO_NAME));
        }
        if !names.insert(&experiment.name) {
            return Err(StudyError::at(format!("{path}.name"), "another experiment has this name"));
        }
        let mut names = BTreeSet::new();
        for (place, run) in experiment.runs.iter().enumerate() {
            let path = format!("{path}.run[{place}].name");
            if !is_name(&run.name) {
                return Err(StudyError::at(path, NO_NAME));
            }
            if !names.insert(&run.name) {
                return Err(StudyError::at(path, "another run of this experiment has this name"));
            }
        }
    }
    Ok(())
}

pub(crate) const NO_NAME: &str = "no name: 1 to 64 letters, digits, `-`, `_` and `.`";

/// It names files, and stands in references to values.
pub(crate) fn is_name(text: &str) -> bool {
    let is = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 64 && text.chars().all(is) && !text.starts_with('.')
}

/// A run by itself; paths are relative to it.
pub(super) fn run(planned: &Planned) -> Result<(), StudyError> {
    let Planned { messages, loads, .. } = planned;
    if messages.len() > MAX_MESSAGES || loads.len() > MAX_LOADS {
        let what = format!("more than {MAX_MESSAGES} messages or {MAX_LOADS} loads");
        return Err(StudyError::at("", what));
    }
    if messages.is_empty() && loads.is_empty() {
        return Err(StudyError::at("", "neither messages nor loads"));
    }
    if planned.limit.is_zero() {
        return Err(StudyError::at("limit", "nothing can be done in no time"));
    }
    if !(1..=crate::MAX_REPEAT).contains(&planned.repeat) {
        return Err(StudyError::at("repeat", format!("1 to {} times", crate::MAX_REPEAT)));
    }
    planned.tcp.check()?;
    let mut names = BTreeSet::new();
    let all = messages.iter().map(|message| &message.name).chain(loads.iter().map(|l| &l.name));
    for name in all {
        if !is_name(name) {
            return Err(StudyError::at("", format!("{name:?}: {NO_NAME}")));
        }
        if !names.insert(name) {
            return Err(StudyError::at("", format!("{name} is the name of two messages or loads")));
        }
    }
    for (place, message) in messages.iter().enumerate() {
        self::message(planned, message)
            .map_err(|what| StudyError::at(format!("messages[{place}]"), what))?;
    }
    for (place, load) in loads.iter().enumerate() {
        self::load(planned, load)
            .map_err(|what| StudyError::at(format!("loads[{place}]"), what))?;
    }
    analysed(planned).map_err(|what| StudyError::at("analysed", what))?;
    mail(planned)
}

/// Two ports of one router, of which packets leave by one that counts them.
fn analysed(planned: &Planned) -> Result<(), String> {
    let Some(path) = &planned.analysed else { return Ok(()) };
    let routers = &planned.topology.routers;
    let router = |text: &str| {
        let (router, port) = text.split_once('.')?;
        routers.get(router)?.ports.contains_key(port).then(|| router.to_owned())
    };
    let known = |text: &str| router(text).ok_or_else(|| format!("{text}: no router has this port"));
    if known(&path.from)? != known(&path.to)? || path.from == path.to {
        return Err("from and to are two ports of one router".to_owned());
    }
    match planned.queueing(&path.to) {
        Some(_) => Ok(()),
        None => Err(format!("{}: no policy has a queueing there, so nothing counts", path.to)),
    }
}

fn message(planned: &Planned, message: &StudyMessage) -> Result<(), String> {
    paper(&message.paper)?;
    if message.size.0 == 0 {
        return Err("size: at least one octet".to_owned());
    }
    if message.bound.is_some() && message.base.is_none() {
        return Err("bound: it is of the time of a base".to_owned());
    }
    if let Some(bound) = &message.bound {
        crate::bound::check(planned, bound)?;
    }
    if planned.mail.is_none() {
        return Err("a message, and the study has no [mail]".to_owned());
    }
    if let StudyStart::After(after) = &message.start {
        // An earlier one, so that no message waits for itself.
        let before = planned.messages.iter().take_while(|other| other.name != message.name);
        if !before.into_iter().any(|other| other.name == after.after) {
            return Err(format!("no message before it is named {}", after.after));
        }
    }
    Ok(())
}

fn load(planned: &Planned, load: &StudyLoad) -> Result<(), String> {
    paper(&load.paper)?;
    let hosts = &planned.topology.hosts;
    if let Some(missing) = [&load.from, &load.to].into_iter().find(|h| !hosts.contains_key(*h)) {
        return Err(format!("the topology has no host {missing}"));
    }
    match load.protocol {
        Protocol::Tcp if load.inside || load.clock.is_some() => {
            return Err("inside and clock are for UDP".to_owned());
        }
        Protocol::Tcp => {}
        _ if load.rate.is_none() => return Err("UDP has a rate".to_owned()),
        _ if load.octets.is_some() => {
            return Err("UDP ends by its time, not after so many octets".to_owned());
        }
        Protocol::Echo if load.flows > 1 => return Err("an echo is of one flow".to_owned()),
        _ => {}
    }
    addresses(planned, load)?;
    // Of the probe that the programs put into each: see `lab load`.
    if !(64..=1_472).contains(&load.payload) {
        return Err(format!("a payload of {} octets: 64 to 1,472", load.payload));
    }
    if load.flows == 0 || load.flows > 10_000 || load.jitter_percent > 100 {
        return Err("1 to 10,000 flows, 0 to 100 percent of jitter".to_owned());
    }
    if load.protocol == Protocol::Echo && (load.inside || load.clock.is_some()) {
        return Err("inside and clock are for UDP one way".to_owned());
    }
    if load.inside && (load.probing.is_some() || load.clock.is_some()) {
        return Err("inside, no delays are measured: neither probing nor a clock".to_owned());
    }
    let far = |of: f64| !of.is_finite() || of.abs() > MAX_CLOCK;
    if load.clock.is_some_and(|clock| far(clock.ahead_ms) || far(clock.drift_ppm)) {
        return Err(format!("a clock's ahead_ms and drift_ppm are within {MAX_CLOCK}"));
    }
    if load.probing.is_some_and(|probing| probing.0 > Duration::from_secs(600)) {
        return Err("probing of more than 10min".to_owned());
    }
    if load.port.is_some_and(|port| port < 1_024 || port.checked_add(load.flows).is_none()) {
        return Err("a port from 1024 to 65535, also of its last flow".to_owned());
    }
    let endless = load.time.is_none() && load.octets.is_none();
    if endless && planned.messages.is_empty() && planned.loads.iter().all(is_endless) {
        return Err("a run without messages needs a load that ends: give it a time".to_owned());
    }
    Ok(())
}

/// The addresses it names are those of its hosts, and of one family.
fn addresses(planned: &Planned, load: &StudyLoad) -> Result<(), String> {
    let ends = [("source", load.source, &load.from), ("destination", load.destination, &load.to)];
    for (key, address, host) in ends {
        let Some(address) = address else { continue };
        let ports = planned.topology.hosts.get(host).map(|host| host.ports.values());
        let own = ports.into_iter().flatten().flat_map(|port| &port.addresses);
        if !own.into_iter().any(|own| own.ip() == address) {
            return Err(format!("{key} = {address}: the host {host} has no such address"));
        }
    }
    match (load.source, load.destination) {
        (Some(source), Some(destination)) if source.is_ipv4() != destination.is_ipv4() => {
            Err(format!("{source} and {destination} are of different families"))
        }
        (Some(_), _) if load.protocol == Protocol::Tcp => {
            Err("TCP is sent from the host's first address".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_endless(load: &StudyLoad) -> bool {
    load.time.is_none() && load.octets.is_none()
}

fn paper(values: &std::collections::BTreeMap<String, f64>) -> Result<(), String> {
    for (key, value) in values {
        let Some(measure) = Measure::of_paper(key) else {
            return Err(format!("paper.{key}: no value of a row; {}", Measure::NAMES.join(", ")));
        };
        if !value.is_finite() || *value < 0.0 {
            return Err(format!("paper.{key}: a number from 0 on"));
        }
        let of = |suffix: &str| values.get(&format!("{}{suffix}", measure.name())).copied();
        let (low, high) = (of(MORE_THAN), of(LESS_THAN));
        if of("").is_some() && (low.is_some() || high.is_some()) {
            return Err(format!("paper.{key}: a value, or its bounds"));
        }
        if low.zip(high).is_some_and(|(low, high)| low >= high) {
            return Err(format!(
                "paper.{key}: nothing is more than the one and less than the other"
            ));
        }
    }
    Ok(())
}

fn mail(planned: &Planned) -> Result<(), StudyError> {
    let Some(mail) = &planned.mail else { return Ok(()) };
    let wrong = |what: String| Err(StudyError::at("mail", what));
    for (site, host) in &mail.sites {
        if !planned.topology.hosts.contains_key(host) {
            return wrong(format!("sites.{site}: the topology has no host {host}"));
        }
    }
    if let Some(end) = [&mail.from, &mail.to].into_iter().find(|e| !mail.sites.contains_key(*e)) {
        return wrong(format!("there is no site {end}"));
    }
    if mail.sites.len() > 2 {
        // Each channel has one port at each site.
        return wrong("sites: more than two".to_owned());
    }
    if mail.from == mail.to {
        return wrong("messages go from one site to another".to_owned());
    }
    for message in &planned.messages {
        let carries =
            |channel: &crate::file::StudyChannel| channel.precedences.contains(&message.precedence);
        if !mail.channels.iter().any(carries) {
            return wrong(format!("no channel for {}", message.precedence));
        }
    }
    Ok(())
}

/// Where the run is in the file.
fn run_path(study: &Study, planned: &Planned) -> String {
    let runs = study.experiments.get(planned.experiment).map(|experiment| &experiment.runs[..]);
    let is_it = |run: &StudyRun| {
        let rest = planned.run.strip_prefix(&run.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    let place = runs.unwrap_or_default().iter().position(is_it).unwrap_or_default();
    format!("experiment[{}].run[{place}]", planned.experiment)
}

/// All runs together: their number, and what they refer to.
pub(super) fn planned(study: &Study, planned: &[Planned]) -> Result<(), StudyError> {
    if planned.len() > MAX_RUNS {
        return Err(StudyError::at("experiment", format!("more than {MAX_RUNS} runs")));
    }
    let longest = planned.iter().map(|planned| planned.limit).max().unwrap_or_default();
    if longest > Duration::from_secs(86_400) {
        return Err(StudyError::at("experiment", "a run of more than a day"));
    }
    let items: BTreeSet<String> = planned.iter().flat_map(items).collect();
    let udp: BTreeSet<String> = planned.iter().flat_map(packets).collect();
    // What can be asked for beside them: the sum of a run's messages.
    let sums: BTreeSet<String> = planned.iter().map(crate::expect::sum).collect();
    for planned in planned {
        let of =
            |kind: &'static str, number, base: &Option<String>| Some((kind, number, base.clone()?));
        let messages = planned.messages.iter().enumerate();
        let messages = messages.filter_map(|(number, one)| of("messages", number, &one.base));
        let loads = planned.loads.iter().enumerate();
        let loads = loads.filter_map(|(number, one)| of("loads", number, &one.base));
        for (kind, number, base) in messages.chain(loads) {
            if !items.contains(&crate::row::whole(planned.experiment_name(), &base)) {
                let path = format!("{}.{kind}[{number}].base", run_path(study, planned));
                return Err(StudyError::at(path, format!("{base:?}: there is none")));
            }
        }
    }
    crate::printed::check(study, &items)?;
    crate::hypothesis::check(study, &items)?;
    figures(study, planned)?;
    grids(study, planned)?;
    for (number, figure) in study.over_time.iter().enumerate() {
        if let Some((_, item)) = figure.items.iter().find(|(_, item)| !items.contains(item)) {
            let path = format!("over_time[{number}].items");
            return Err(StudyError::at(path, format!("{item:?}: there is none")));
        }
    }
    for (number, experiment) in study.experiments.iter().enumerate() {
        for (place, expect) in experiment.expect.iter().enumerate() {
            let path = format!("experiment[{number}].expect[{place}]");
            if !matches!(
                (experiment.environment, expect.environment),
                (Environments::Any, _)
                    | (_, Environments::Any)
                    | (Environments::Testbed, Environments::Testbed)
                    | (Environments::Simulation, Environments::Simulation)
            ) {
                return Err(StudyError::at(
                    path,
                    "environment: its experiment is made on the other one",
                ));
            }
            if !expect.arrives.is_empty() {
                arrival(&path, &experiment.name, expect, &items)?;
                if !udp.contains(&crate::row::whole(&experiment.name, &expect.value)) {
                    return Err(StudyError::at(path, "arrives is of a load of UDP"));
                }
                continue;
            }
            if let Some(each) = &expect.each {
                crate::expect::check_each(&experiment.name, expect, each, planned)
                    .map_err(|what| StudyError::at(&path, what))?;
                continue;
            }
            let bounds = [expect.at_least, expect.at_most];
            let mut given = bounds.into_iter().flatten().peekable();
            if given.peek().is_none() || given.any(|bound| !bound.is_finite()) {
                return Err(StudyError::at(path, "a number for at_least or at_most"));
            }
            if let (Some(least), Some(most)) = (expect.at_least, expect.at_most)
                && least > most
            {
                return Err(StudyError::at(path, "at_least is above at_most: nothing can hold"));
            }
            crate::during::check(&experiment.name, expect, planned)
                .map_err(|what| StudyError::at(&path, what))?;
            if expect.to.is_some() && expect.minus.is_some() {
                return Err(StudyError::at(path, "to or minus, not both"));
            }
            let references = [Some(&expect.value), expect.to.as_ref(), expect.minus.as_ref()];
            for reference in references.into_iter().flatten() {
                crate::expect::reference(&experiment.name, reference)
                    .filter(|(item, measure)| {
                        let is_sum = *measure == Measure::Seconds && sums.contains(item);
                        items.contains(item) || is_sum
                    })
                    .ok_or_else(|| {
                        let what = format!("{reference:?}: no `run/item.value` has this name");
                        StudyError::at(&path, what)
                    })?;
            }
        }
    }
    Ok(())
}

/// Loads whose packets are counted by code point where they arrive.
fn packets(planned: &Planned) -> Vec<String> {
    let loads = planned.loads.iter().filter(|load| load.protocol != Protocol::Tcp);
    loads.map(|load| format!("{}/{}", planned.id, load.name)).collect()
}

/// An expectation of code points names a load and has no bounds.
fn arrival(
    path: &str,
    experiment: &str,
    expect: &Expect,
    items: &BTreeSet<String>,
) -> Result<(), StudyError> {
    if expect.to.is_some()
        || expect.minus.is_some()
        || expect.during.is_some()
        || expect.at_least.is_some()
        || expect.at_most.is_some()
    {
        return Err(StudyError::at(
            path,
            "arrives goes without during, to, minus, at_least and at_most",
        ));
    }
    if !items.contains(&crate::row::whole(experiment, &expect.value)) {
        return Err(StudyError::at(
            path,
            format!("{:?}: no `run/item` has this name", expect.value),
        ));
    }
    Ok(())
}

/// Grids have a value and rows.
fn grids(study: &Study, planned: &[Planned]) -> Result<(), StudyError> {
    for (number, grid) in study.grids.iter().enumerate() {
        let wrong = |key: &str, what: String| StudyError::at(format!("grid[{number}].{key}"), what);
        let unlike = study.grids.iter().take(number).all(|other| other.name != grid.name);
        if !is_name(&grid.name) || !unlike {
            return Err(wrong("name", "no name, or that of another grid".to_owned()));
        }
        if Measure::from_name(&grid.value).is_none() {
            let what = format!("{:?}: one of {}", grid.value, Measure::NAMES.join(", "));
            return Err(wrong("value", what));
        }
        for (key, names) in [("down", &grid.down), ("across", &grid.across)] {
            let missing = names.iter().find(|name| !study.parameters.contains_key(*name));
            if names.is_empty() || missing.is_some() {
                let missing = missing.map_or("", String::as_str);
                return Err(wrong(key, format!("{missing:?}: no parameter")));
            }
        }
        let all: BTreeSet<String> = planned.iter().flat_map(plain_items).collect();
        if let Some(missing) = grid.of.iter().find(|item| !all.contains(*item)) {
            return Err(wrong(
                "of",
                format!("{missing:?}: no `experiment/run/item` has this name"),
            ));
        }
    }
    Ok(())
}

/// Its items, the run as in the file.
fn plain_items(planned: &Planned) -> Vec<String> {
    let plain = |item: String| crate::row::plain_item(&item);
    items(planned).into_iter().map(plain).collect()
}

/// Names of figures, and what their lines refer to.
fn figures(study: &Study, planned: &[Planned]) -> Result<(), StudyError> {
    let mut names = BTreeSet::new();
    for (number, figure) in study.figures.iter().enumerate() {
        let path = format!("figure[{number}]");
        if !is_name(&figure.name) || !names.insert(&figure.name) {
            return Err(StudyError::at(
                format!("{path}.name"),
                "no name, or that of another figure",
            ));
        }
        if !study.parameters.contains_key(&figure.x) {
            let what = format!("there is no parameter {}", figure.x);
            return Err(StudyError::at(format!("{path}.x"), what));
        }
        if figure.panels.is_empty() || figure.panels.len() > MAX_PANELS {
            return Err(StudyError::at(
                format!("{path}.panel"),
                format!("1 to {MAX_PANELS} panels"),
            ));
        }
        for (place, panel) in figure.panels.iter().enumerate() {
            let path = format!("{path}.panel[{place}]");
            if Measure::from_name(&panel.y).is_none() {
                let what = format!("{:?}: one of {}", panel.y, Measure::NAMES.join(", "));
                return Err(StudyError::at(format!("{path}.y"), what));
            }
            if panel.lines.iter().any(|line| line.colour.is_some_and(|colour| colour > 7)) {
                return Err(StudyError::at(format!("{path}.lines"), "a colour is from 0 to 7"));
            }
            let missing = panel.lines.iter().find(|line| {
                let mut items = planned.iter().filter(|run| line.is_of(run)).flat_map(items);
                !items.any(|item| line.is_item(&item))
            });
            if let Some(line) = missing {
                let what = format!("{:?}: no `experiment/run/item` has this name", line.of);
                return Err(StudyError::at(format!("{path}.lines"), what));
            }
        }
    }
    Ok(())
}

fn items(planned: &Planned) -> Vec<String> {
    let names =
        planned.messages.iter().map(|m| &m.name).chain(planned.loads.iter().map(|l| &l.name));
    let names = names.cloned().chain(crate::row::code_point_rows(planned));
    names.map(|name| format!("{}/{name}", planned.id)).collect()
}
