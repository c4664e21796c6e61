//! Where two reports differ first: the row that exercised a fault.

use serde_json::Value;

/// Keys that describe the report itself and differ between any two planners.
const SELF_DESCRIPTION: [&str; 3] = ["inputs", "build", "engine"];

/// The first place where `faulty` differs from `clean`, with both values; `None` when they say the same.
pub(crate) fn first_difference(clean: &Value, faulty: &Value) -> Option<String> {
    let (Some(clean), Some(faulty)) = (clean.as_object(), faulty.as_object()) else {
        return Some("the whole report".to_owned());
    };
    // Rows before figures: a row says more about a fault than a total does.
    let mut keys: Vec<&String> = clean
        .keys()
        .chain(faulty.keys().filter(|key| !clean.contains_key(*key)))
        .filter(|key| !SELF_DESCRIPTION.contains(&key.as_str()))
        .collect();
    keys.sort_by_key(|key| !matches!(key.as_str(), "plan" | "results"));
    keys.into_iter()
        .find_map(|key| difference(key, clean.get(key), faulty.get(key)))
}

fn difference(path: &str, clean: Option<&Value>, faulty: Option<&Value>) -> Option<String> {
    match (clean, faulty) {
        (Some(clean), Some(faulty)) if clean == faulty => None,
        (Some(Value::Object(clean)), Some(Value::Object(faulty))) => clean
            .keys()
            .chain(faulty.keys().filter(|key| !clean.contains_key(*key)))
            .find_map(|key| difference(&format!("{path}.{key}"), clean.get(key), faulty.get(key))),
        (Some(Value::Array(clean)), Some(Value::Array(faulty))) => in_list(path, clean, faulty),
        (clean, faulty) => Some(format!("{path}: {} → {}", short(clean), short(faulty))),
    }
}

/// The first place in a list. A row that one of them lacks is named as such, and not as a change of its neighbour.
fn in_list(path: &str, clean: &[Value], faulty: &[Value]) -> Option<String> {
    let has = |list: &[Value], name: &str| list.iter().any(|row| name_of(Some(row)).as_deref() == Some(name));
    (0..clean.len().max(faulty.len())).find_map(|n| {
        let (ours, theirs) = (clean.get(n), faulty.get(n));
        match (name_of(ours), name_of(theirs)) {
            (Some(a), Some(b)) if a != b && !has(clean, &b) => Some(format!("{b}: absent → present")),
            (Some(a), Some(b)) if a != b && !has(faulty, &a) => Some(format!("{a}: present → absent")),
            (a, b) => {
                let name = a.or(b).unwrap_or_else(|| format!("{path}[{n}]"));
                difference(&name, ours, theirs)
            }
        }
    })
}

fn name_of(row: Option<&Value>) -> Option<String> {
    let row = row?;
    row.get("attempt_id")
        .or_else(|| row.get("id"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn short(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::Object(_) | Value::Array(_)) => "present".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_is_named_before_a_total() {
        let clean = json!({"counts": {"skipped": 1}, "plan": [{"attempt_id": "a-02", "earliest_ts": 1017}]});
        let faulty = json!({"counts": {}, "plan": [{"attempt_id": "a-02", "earliest_ts": 1077}]});
        assert_eq!(
            first_difference(&clean, &faulty).as_deref(),
            Some("a-02.earliest_ts: 1017 → 1077")
        );
    }

    #[test]
    fn a_row_put_in_between_is_named_itself() {
        let clean = json!({"plan": [{"attempt_id": "a-08"}, {"attempt_id": "a-10"}]});
        let faulty =
            json!({"plan": [{"attempt_id": "a-08"}, {"attempt_id": "a-09"}, {"attempt_id": "a-10"}]});
        assert_eq!(
            first_difference(&clean, &faulty).as_deref(),
            Some("a-09: absent → present")
        );
        assert_eq!(
            first_difference(&faulty, &clean).as_deref(),
            Some("a-09: present → absent")
        );
    }

    #[test]
    fn self_description_is_no_difference() {
        let clean = json!({"ok": true, "build": "a", "inputs": {"x": 1}});
        assert_eq!(first_difference(&clean, &json!({"ok": true, "build": "b"})), None);
    }

    #[test]
    fn a_figure_left_out_is_a_difference() {
        let clean = json!({"counts": {"skipped": 1}});
        let said = first_difference(&clean, &json!({"counts": {}}));
        assert_eq!(said.as_deref(), Some("counts.skipped: 1 → absent"));
    }
}
