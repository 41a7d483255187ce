//! The combinations of parameters that are varied.

use super::covering;
use router::policy::Name;
use std::collections::BTreeMap;
use toml::Value;

pub(crate) type Values = BTreeMap<Name, Value>;

/// How many combinations there are; `None` beyond what can be counted.
pub(crate) fn count(vary: &BTreeMap<Name, Vec<Value>>) -> Option<usize> {
    vary.values().try_fold(1usize, |all, values| all.checked_mul(values.len()))
}

/// Those of a covering array: see [`covering`].
pub(super) fn cells(vary: &BTreeMap<Name, Vec<Value>>, most: usize) -> Vec<(String, Values)> {
    let sizes: Vec<usize> = vary.values().map(Vec::len).collect();
    let values = |cell: &Vec<usize>| -> Values {
        let places = vary.iter().zip(cell);
        places
            .filter_map(|((name, all), place)| Some((name.clone(), all.get(*place)?.clone())))
            .collect()
    };
    let cells = covering::cells(&sizes, most);
    cells.iter().map(values).map(|values| (suffix(&values), values)).collect()
}

/// Every combination, the last parameter changing fastest, each with what is put behind the run's
/// name; one without anything where nothing is varied.
pub(crate) fn variants(vary: &BTreeMap<Name, Vec<Value>>) -> Vec<(String, Values)> {
    let mut all = vec![Values::new()];
    for (name, values) in vary {
        let with = |variant: &Values, value: &Value| {
            let mut variant = variant.clone();
            variant.insert(name.clone(), value.clone());
            variant
        };
        all = all
            .iter()
            .flat_map(|variant| values.iter().map(|value| with(variant, value)))
            .collect();
    }
    all.into_iter().map(|values| (suffix(&values), values)).collect()
}

fn suffix(values: &Values) -> String {
    // A slash divides the parts of an item's name.
    let each = |(name, value)| format!("{name}={}", plain(value).replace('/', "|"));
    let each: Vec<String> = values.iter().map(each).collect();
    if each.is_empty() { String::new() } else { format!("[{}]", each.join(",")) }
}

/// A value as people write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_run() {
        let vary = BTreeMap::from([
            ("window".to_owned(), vec![Value::Integer(1), Value::Integer(3)]),
            ("policy".to_owned(), vec!["a".into(), "b".into()]),
        ]);
        let names: Vec<String> = variants(&vary).into_iter().map(|(name, _)| name).collect();
        let wanted = ["[policy=a,window=1]", "[policy=a,window=3]", "[policy=b,window=1]"];
        assert_eq!(names.get(..3).unwrap(), wanted);
        assert_eq!((names.len(), count(&vary)), (4, Some(4)));
        assert_eq!(variants(&BTreeMap::new()), [(String::new(), Values::new())]);
        let vary = BTreeMap::from([("to".to_owned(), vec!["10.0.0.0/8".into()])]);
        assert_eq!(variants(&vary).first().unwrap().0, "[to=10.0.0.0|8]");
    }
}
