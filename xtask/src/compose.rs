//! compose.yaml against the Compose Specification's own schema (`xtask/schema/compose-spec.json`), by a small
//! validator that knows the keywords that schema uses and refuses one it does not know.

use serde_json::Value;

/// Keywords that say nothing about validity, or nothing that a project file of ours can break.
const SILENT: &[&str] = &["$schema", "$id", "$comment", "$defs", "uniqueItems", "format"];

/// Every way in which a value does not fit the schema, with its place. Empty is valid.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Judge {
        whole: schema,
        found: &mut found,
    }
    .judge(schema, value, "");
    found
}

struct Judge<'a> {
    whole: &'a Value,
    found: &'a mut Vec<String>,
}

impl Judge<'_> {
    fn say(&mut self, place: &str, what: &str) {
        self.found
            .push(format!("{}: {what}", if place.is_empty() { "/" } else { place }));
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        Judge {
            whole: self.whole,
            found: &mut found,
        }
        .judge(schema, value, "");
        found.is_empty()
    }

    fn judge(&mut self, schema: &Value, value: &Value, place: &str) {
        let Value::Object(keywords) = schema else {
            if *schema == Value::Bool(false) {
                self.say(place, "nothing may stand here");
            }
            return;
        };
        for (keyword, rule) in keywords {
            self.keyword(schema, keyword, rule, value, place);
        }
    }

    fn keyword(&mut self, schema: &Value, keyword: &str, rule: &Value, value: &Value, place: &str) {
        match keyword {
            "type" => self.kind(rule, value, place),
            "$ref" => match rule
                .as_str()
                .and_then(|at| self.whole.pointer(at.trim_start_matches('#')))
            {
                Some(target) => self.judge(target, value, place),
                None => self.say(place, "the schema refers to a definition that it does not hold"),
            },
            "properties" | "patternProperties" | "additionalProperties" => {
                // Judged together, at the first of them that is there.
                let order = ["properties", "patternProperties", "additionalProperties"];
                if order.iter().find(|name| schema.get(name).is_some()) == Some(&keyword) {
                    self.members(schema, value, place);
                }
            }
            "unevaluatedProperties" => {
                for name in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
                    if !self.knows(schema, name) {
                        self.say(&format!("{place}/{name}"), "there is no such key");
                    }
                }
            }
            "required" => self.required(rule, value, place),
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.judge(rule, item, &format!("{place}/{at}"));
                }
            }
            "oneOf" | "anyOf" => self.some_of(keyword, rule, value, place),
            "allOf" => {
                for part in rule.as_array().into_iter().flatten() {
                    self.judge(part, value, place);
                }
            }
            "enum" if !rule.as_array().is_some_and(|words| words.contains(value)) => {
                self.say(place, &format!("{value} is none of {rule}"));
            }
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                self.say(place, &format!("{value} is less than {rule}"));
            }
            "maximum" if value.as_f64() > rule.as_f64() && value.is_number() => {
                self.say(place, &format!("{value} is more than {rule}"));
            }
            "pattern"
                if value
                    .as_str()
                    .is_some_and(|text| !matches(rule.as_str().unwrap_or(""), text)) =>
            {
                self.say(place, &format!("{value} does not match {rule}"));
            }
            "enum" | "minimum" | "maximum" | "pattern" => {}
            silent if SILENT.contains(&silent) => {}
            unknown => self.say(
                place,
                &format!("the schema uses `{unknown}`, which this check does not know"),
            ),
        }
    }

    fn kind(&mut self, rule: &Value, value: &Value, place: &str) {
        let is = |name: &str| match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            _ => false,
        };
        let fits = match rule {
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
            name => name.as_str().is_some_and(is),
        };
        if !fits {
            self.say(place, &format!("{value} is not of type {rule}"));
        }
    }

    fn members(&mut self, schema: &Value, value: &Value, place: &str) {
        let Value::Object(members) = value else { return };
        for (name, member) in members {
            let place = format!("{place}/{name}");
            let own = schema.get("properties").and_then(|all| all.get(name));
            let by_pattern = schema
                .get("patternProperties")
                .and_then(Value::as_object)
                .and_then(|all| {
                    all.iter()
                        .find(|(pattern, _)| matches(pattern, name))
                        .map(|(_, rule)| rule)
                });
            match own.or(by_pattern).or_else(|| schema.get("additionalProperties")) {
                Some(Value::Bool(false)) => self.say(&place, "there is no such key"),
                Some(rule) => self.judge(rule, member, &place),
                None => {}
            }
        }
    }

    /// True when the schema, or a part of its `allOf`, has a rule for this key.
    fn knows(&self, schema: &Value, name: &str) -> bool {
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|at| self.whole.pointer(at.trim_start_matches('#')));
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let parts = schema.get("allOf").and_then(Value::as_array);
        schema
            .get("properties")
            .is_some_and(|all| all.get(name).is_some())
            || patterns.is_some_and(|all| all.keys().any(|pattern| matches(pattern, name)))
            || target.is_some_and(|target| self.knows(target, name))
            || parts.is_some_and(|parts| parts.iter().any(|part| self.knows(part, name)))
    }

    fn required(&mut self, rule: &Value, value: &Value, place: &str) {
        for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.is_object() && value.get(name).is_none() {
                self.say(place, &format!("the key `{name}` is missing"));
            }
        }
    }

    fn some_of(&mut self, keyword: &str, rule: &Value, value: &Value, place: &str) {
        let choices = rule.as_array().map_or(&[][..], Vec::as_slice);
        let fitting = choices.iter().filter(|choice| self.fits(choice, value)).count();
        if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
            self.say(
                place,
                &format!("{value} fits {fitting} of {} forms", choices.len()),
            );
        }
    }
}

/// The few patterns of that schema; an unknown one matches nothing, so that it shows.
fn matches(pattern: &str, text: &str) -> bool {
    let name = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    match pattern {
        "^x-" => text.starts_with("x-"),
        ".+" | "^.+$" => !text.is_empty(),
        "^[a-zA-Z0-9._-]+$" | "[a-zA-Z0-9][a-zA-Z0-9_.-]+" => name(text),
        "^[a-z]+$" => !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase()),
        _ => false,
    }
}

/// The Compose Specification's schema.
pub(crate) fn schema() -> crate::Result<Value> {
    serde_json::from_str(include_str!("../schema/compose-spec.json"))
        .map_err(|error| crate::Error::Found(format!("xtask/schema/compose-spec.json: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(yaml: &str) -> Vec<String> {
        let value = serde_yaml_ng::from_str(yaml).expect("YAML");
        violations(&schema().expect("a schema"), &value)
    }

    #[test]
    fn a_service_in_good_form_is_accepted() {
        let good = "services:\n  a:\n    image: x\n    read_only: true\n    ports: [\"80:80\"]\n    volumes:\n      - {type: bind, source: ./in, target: /in, read_only: true}\nvolumes:\n  data: {}\nx-note: y\n";
        assert_eq!(judge(good), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_mistake_is_named_with_its_place() {
        for (yaml, place) in [
            ("services:\n  a:\n    imag: x\n", "/services/a/imag"),
            ("services:\n  a:\n    image: [x]\n", "/services/a/image"),
            ("services:\n  a:\n    read_only: {}\n", "/services/a/read_only"),
            (
                "services:\n  a:\n    volumes: [{source: ./in}]\n",
                "/services/a/volumes/0",
            ),
            ("service: {}\n", "/service"),
            ("services:\n  \"a b\": {image: x}\n", "/services/a b"),
        ] {
            let found = judge(yaml);
            assert!(
                found.iter().any(|line| line.starts_with(place)),
                "{yaml}: {found:?}"
            );
        }
    }
}
