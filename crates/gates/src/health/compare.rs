//! Compares a report with the one derived again, field by field. Knows JSON and which lists have rows with ids; knows no
//! rule of any round.

use super::Issue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How the parts of a report are compared.
pub(super) struct Shape {
    /// The list of rows, and the key that identifies one.
    pub(super) rows: (&'static str, &'static str),
    /// Keys that describe the report itself: looked at elsewhere, or not at all.
    pub(super) own: &'static [&'static str],
}

/// Every difference: `row_missing`, `row_extra` or `field_mismatch`, in the order of the rows, then of the keys.
pub(super) fn compare(shape: &Shape, expected: &Value, found: &Value) -> Vec<Issue> {
    let mut issues = Vec::new();
    let (rows, id) = shape.rows;
    // A summary leaves its rows out and says so by null: its figures are compared all the same.
    if !found[rows].is_null() || found.get(rows).is_none() {
        compare_rows(rows, id, &expected[rows], &found[rows], &mut issues);
    }
    let without = |value: &Value| -> Map<String, Value> {
        let object = value.as_object().cloned().unwrap_or_default();
        object
            .into_iter()
            .filter(|(key, _)| key != rows && !shape.own.contains(&key.as_str()))
            .collect()
    };
    compare_objects("", &without(expected), &without(found), &mut issues);
    issues
}

fn compare_rows(list: &str, id: &str, expected: &Value, found: &Value, issues: &mut Vec<Issue>) {
    let none = Vec::new();
    let (expected, found) = (
        expected.as_array().unwrap_or(&none),
        found.as_array().unwrap_or(&none),
    );
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (n, row) in found.iter().enumerate() {
        match row[id].as_str() {
            Some(name) if !places.contains_key(name) => drop(places.insert(name, n)),
            Some(name) => issues.push(Issue::new("row_extra", name, "one row", "a row more")),
            None => issues.push(Issue::new(
                "row_extra",
                format!("{list}[{n}]"),
                format!("a row with `{id}`"),
                row.to_string(),
            )),
        }
    }
    let mut last = None;
    let mut in_order = true;
    for row in expected {
        let name = row[id].as_str().unwrap_or_default();
        match places.remove(name) {
            None => issues.push(Issue::new("row_missing", name, "a row", "none")),
            Some(place) => {
                in_order &= last.is_none_or(|last| last < place);
                last = Some(place);
                let none = Map::new();
                let objects = (
                    row.as_object().unwrap_or(&none),
                    found[place].as_object().unwrap_or(&none),
                );
                compare_objects(&format!("{name}."), objects.0, objects.1, issues);
            }
        }
    }
    issues.extend(
        places
            .into_keys()
            .map(|name| Issue::new("row_extra", name, "no row", "a row")),
    );
    if !in_order {
        issues.push(Issue::new(
            "field_mismatch",
            list,
            "rows in the order of the input",
            "another order",
        ));
    }
}

fn compare_objects(
    path: &str,
    expected: &Map<String, Value>,
    found: &Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    for (key, value) in expected {
        compare_values(&format!("{path}{key}"), value, found.get(key), issues);
    }
    for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
        issues.push(Issue::new(
            "field_mismatch",
            format!("{path}{key}"),
            "nothing",
            short(Some(value)),
        ));
    }
}

fn compare_values(path: &str, expected: &Value, found: Option<&Value>, issues: &mut Vec<Issue>) {
    match (expected, found) {
        (expected, Some(found)) if expected == found => {}
        (Value::Object(expected), Some(Value::Object(found))) => {
            compare_objects(&format!("{path}."), expected, found, issues);
        }
        (Value::Array(expected), Some(Value::Array(found))) => compare_lists(path, expected, found, issues),
        (expected, found) => {
            issues.push(Issue::new(
                "field_mismatch",
                path,
                short(Some(expected)),
                short(found),
            ));
        }
    }
}

/// Lists of names or numbers: an issue for each element too few or too many, or one for another order.
fn compare_lists(path: &str, expected: &[Value], found: &[Value], issues: &mut Vec<Issue>) {
    let before = issues.len();
    let mut left: Vec<&Value> = found.iter().collect();
    for value in expected {
        match left.iter().position(|candidate| *candidate == value) {
            Some(at) => drop(left.remove(at)),
            None => issues.push(Issue::new(
                "field_mismatch",
                format!("{path}.{}", short(Some(value))),
                "present",
                "absent",
            )),
        }
    }
    for value in left {
        issues.push(Issue::new(
            "field_mismatch",
            format!("{path}.{}", short(Some(value))),
            "absent",
            "present",
        ));
    }
    if issues.len() == before {
        issues.push(Issue::new("field_mismatch", path, "another order", "this order"));
    }
}

fn short(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SHAPE: Shape = Shape {
        rows: ("plan", "attempt_id"),
        own: &["build"],
    };

    fn places(expected: &Value, found: &Value) -> Vec<(&'static str, String)> {
        compare(&SHAPE, expected, found)
            .into_iter()
            .map(|issue| (issue.code, issue.place))
            .collect()
    }

    #[test]
    fn each_difference_is_one_issue_with_its_word() {
        let due = json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2}, "ids": ["p", "q"], "build": "1"});
        assert!(places(&due, &due).is_empty());
        for (found, code, place) in [
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "row_missing",
                "b",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}, {"attempt_id": "c"}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "row_extra",
                "c",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "row_extra",
                "b",
            ),
            (
                json!({"plan": [{"attempt_id": "b", "x": 2}, {"attempt_id": "a", "x": 1}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "field_mismatch",
                "plan",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": "1"}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "field_mismatch",
                "a.x",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2, "y": 1}], "totals": {"n": 2}, "ids": ["p", "q"]}),
                "field_mismatch",
                "b.y",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2.0}, "ids": ["p", "q"]}),
                "field_mismatch",
                "totals.n",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}], "totals": {}, "ids": ["p", "q"]}),
                "field_mismatch",
                "totals.n",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2}, "ids": ["p"]}),
                "field_mismatch",
                "ids.q",
            ),
            (
                json!({"plan": [{"attempt_id": "a", "x": 1}, {"attempt_id": "b", "x": 2}], "totals": {"n": 2}, "ids": ["q", "p"]}),
                "field_mismatch",
                "ids",
            ),
        ] {
            assert_eq!(places(&due, &found), [(code, place.to_owned())], "{found}");
        }
    }

    #[test]
    fn a_summary_without_rows_is_compared_by_its_figures() {
        let due = json!({"plan": [{"attempt_id": "a"}], "ok": true});
        assert!(places(&due, &json!({"plan": null, "ok": true})).is_empty());
        assert_eq!(
            places(&due, &json!({"plan": null, "ok": false})),
            [("field_mismatch", "ok".to_owned())]
        );
        assert_eq!(
            places(&due, &json!({"ok": true})),
            [("row_missing", "a".to_owned())]
        );
    }
}
