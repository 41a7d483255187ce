//! Every vector as tshark shows it. Those of 1994 are in the presentation contexts of 1988 too: it has no others.

use crate::association::{Answer, Script, play};
use crate::tshark::{Row, WARNING, bad_fields, rows};
use crate::vector::{Kind, Vector, all};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const OPCODE: &str = "ros.opcode";
const RESULT: &str = "ros.returnResult_element";
const ERRCODE: &str = "ros.errcode";

/// The operation whose answer an error is shown as.
fn operation_of(error: i64) -> i64 {
    match error {
        22 | 30..=32 => 24,
        23 => 23,
        33 => 26,
        _ => 22,
    }
}

/// All of them in as few associations as possible: one for each bind argument, result and error.
fn associations(vectors: &[Vector]) -> Vec<Script> {
    let of = |kind: Kind| -> Vec<Bytes> {
        let those = vectors.iter().filter(|vector| vector.kind == kind);
        those.map(|vector| vector.octets.clone().into()).collect()
    };
    let (arguments, results) = (of(Kind::BindArgument), of(Kind::BindResult));
    let script = |bind: &Bytes, bind_answer| {
        let bind = bind.clone();
        Script { bind, bind_answer, operations: VecDeque::new() }
    };
    let mut scripts = Vec::new();
    scripts.extend(arguments.iter().map(|bind| script(bind, Ok(results[0].clone()))));
    scripts.extend(results.iter().map(|result| script(&arguments[0], Ok(result.clone()))));
    let errors = of(Kind::BindError);
    scripts.extend(errors.iter().map(|error| script(&arguments[0], Err(error.clone()))));
    for vector in vectors {
        let octets = Bytes::from(vector.octets.clone());
        let step = match vector.kind {
            Kind::Argument(code) => {
                (code, octets, Answer::Result(of(Kind::Result(code))[0].clone()))
            }
            Kind::Result(code) => {
                (code, of(Kind::Argument(code))[0].clone(), Answer::Result(octets))
            }
            Kind::Error(code) => {
                let operation = operation_of(code);
                let argument = of(Kind::Argument(operation))[0].clone();
                (operation, argument, Answer::Error(code, octets))
            }
            _ => continue,
        };
        scripts[0].operations.push_back(step);
    }
    scripts
}

/// What tshark shows of a vector, against what it has to show.
fn differences(vector: &Vector, row: &Row, bad: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (field, value) in &vector.shown {
        let found = &row.fields[field];
        if found != value {
            out.push(format!("{}: {field} is {found:?}, not {value:?}", vector.name));
        }
    }
    let marked = bad.iter().filter(|field| !row.fields[*field].is_empty());
    let marked: BTreeSet<&String> = marked.collect();
    let allowed: BTreeSet<&String> = vector.marks.iter().collect();
    if marked != allowed {
        out.push(format!("{}: marked with {marked:?}: {}", vector.name, row.messages));
    }
    if vector.marks.is_empty() && row.severity >= WARNING {
        out.push(format!("{}: {}", vector.name, row.messages));
    }
    out
}

#[test]
fn tshark_decodes_every_vector_without_a_mark() {
    let vectors = all();
    let bad = bad_fields();
    let of_vectors = vectors.iter().flat_map(|vector| vector.shown.iter().map(|(f, _)| f.clone()));
    let own = [OPCODE, RESULT, ERRCODE].map(str::to_owned);
    let fields: BTreeSet<String> = of_vectors.chain(bad.iter().cloned()).chain(own).collect();
    let passed: Vec<Vec<(bool, Bytes)>> = associations(&vectors).into_iter().map(play).collect();
    let rows = rows(&passed, &fields.into_iter().collect::<Vec<_>>());
    let mut wrong = Vec::new();
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for vector in &vectors {
        // The row of its packet; where other vectors have the same octets, any of them.
        let hex: String = vector.octets.iter().map(|o| format!("{o:02x}")).collect();
        let own = rows.iter().filter(|row| row.payload.contains(&hex) && is_of(vector, row));
        let row = own.min_by_key(|row| differences(vector, row, &bad).len());
        let Some(row) = row else {
            wrong.push(format!("{}: no packet of it", vector.name));
            continue;
        };
        wrong.extend(differences(vector, row, &bad));
        *shown.entry(&vector.name).or_default() += 1;
        // What has no mark and no value is not shown to be decoded.
        let is_shown = !vector.shown.is_empty() || vector.unproven.is_some();
        assert!(is_shown, "{}: no value of it", vector.name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(shown.len(), vectors.len());
}

/// Whether the packet is of this operation or error: NULL and an empty SET are in many.
fn is_of(vector: &Vector, row: &Row) -> bool {
    let has = |field: &str, code: i64| row.fields[field].split(',').any(|v| v == code.to_string());
    let is_result = !row.fields[RESULT].is_empty();
    match vector.kind {
        Kind::Argument(code) => has(OPCODE, code) && !is_result,
        Kind::Result(code) => has(OPCODE, code) && is_result,
        Kind::Error(code) => has(ERRCODE, code),
        _ => true,
    }
}
