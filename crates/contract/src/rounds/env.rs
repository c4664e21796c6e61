//! A strict reader of `KEY=value` lines. Blank lines and `#` comments are allowed, CRLF and a byte-order mark too;
//! a key twice, an unknown key, a missing key, a NUL or a byte that is not UTF-8 make the whole file unusable.

use crate::error::{ContractError, Problem, ValueError, quoted};
use crate::parse::not_utf8;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// A few lines of settings; more is another file by mistake.
const MAX_ENV_BYTES: usize = 64 * 1024;

/// The values of a file, by key, and what is wrong with it so far.
pub(super) struct Env {
    file: String,
    text: String,
    /// Value, its line, and its place in the text.
    values: BTreeMap<String, (String, usize, Range<usize>)>,
    problems: RefCell<Vec<Problem>>,
}

impl Env {
    /// Splits the file into keys and values; only `keys` may occur, and all of them must.
    pub(super) fn read(bytes: &[u8], file: &str, keys: &[&str]) -> Result<Self, ContractError> {
        if bytes.len() > MAX_ENV_BYTES {
            let found = format!("{} bytes", bytes.len());
            let right = format!("a file of KEY=value lines has at most {MAX_ENV_BYTES} bytes");
            let problem = Problem {
                clause: String::new(),
                line: None,
                found,
                right,
                span: None,
            };
            return Err(ContractError::new(file, "", vec![problem]));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => return Err(not_utf8(bytes, error.valid_up_to(), file)),
        };
        let mut env = Self {
            file: file.to_owned(),
            text: text.to_owned(),
            values: BTreeMap::new(),
            problems: RefCell::default(),
        };
        let mut start = 0;
        for (n, raw) in text.split('\n').enumerate() {
            let line = raw.strip_suffix('\r').unwrap_or(raw);
            env.line(line, n + 1, start, keys);
            start += raw.len() + 1;
        }
        for key in keys.iter().filter(|key| !env.values.contains_key(**key)) {
            let right = format!("write a line `{key}=…`; every key is required and there are no defaults");
            env.complain(key, None, ValueError::new("nothing: the key is missing", right));
        }
        Ok(env)
    }

    fn line(&mut self, line: &str, number: usize, start: usize, keys: &[&str]) {
        let blank = line.trim().is_empty() || line.trim_start().starts_with('#');
        let place = Some((number, start..start + line.len()));
        if line.contains('\0') {
            self.complain("", place, ValueError::new("a NUL byte", "write plain text"));
            return;
        }
        if blank {
            return;
        }
        let Some((key, value)) = line.split_once('=') else {
            let found = format!("{}, a line without `=`", quoted(line));
            self.complain(
                "",
                place,
                ValueError::new(found, "write KEY=value, or begin a comment with #"),
            );
            return;
        };
        if !keys.contains(&key) {
            let known = keys.iter().find(|known| **known == key.trim());
            let right = match known {
                Some(known) => format!("write `{known}={}`, without spaces", value.trim()),
                None => format!("the keys are {}", keys.join(", ")),
            };
            self.complain(
                key.trim(),
                place,
                ValueError::new(format!("the unknown key {}", quoted(key)), right),
            );
            return;
        }
        if let Some((_, first, _)) = self.values.get(key) {
            let found = format!("{} a second time; it is in line {first} already", quoted(key));
            self.complain(key, place, ValueError::new(found, "write each key once"));
            return;
        }
        let value_start = start + key.len() + 1;
        self.values.insert(
            key.to_owned(),
            (value.to_owned(), number, value_start..value_start + value.len()),
        );
    }

    fn complain(&self, key: &str, place: Option<(usize, Range<usize>)>, error: ValueError) {
        let (line, span) = place.unzip();
        let problem = Problem {
            clause: key.to_owned(),
            line,
            found: error.found,
            right: error.right,
            span,
        };
        self.problems.borrow_mut().push(problem);
    }

    /// Reports a problem with the value of a key.
    pub(super) fn wrong(&self, key: &str, found: String, right: impl Into<String>) {
        let place = self.values.get(key).map(|(_, line, span)| (*line, span.clone()));
        self.complain(key, place, ValueError::new(found, right));
    }

    /// The value of a key; none where it is missing, which is reported already.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|(value, ..)| value.as_str())
    }

    /// A whole number from `low` to `high`.
    pub(super) fn integer(&self, key: &str, low: i64, high: i64) -> Option<i64> {
        let text = self.text(key)?;
        let right = if high == i64::MAX {
            format!("write a whole number of at least {low}")
        } else {
            format!("write a whole number from {low} to {high}")
        };
        let digits = text.strip_prefix('-').unwrap_or(text);
        let why = if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            "which is not a whole number"
        } else {
            match text.parse::<i64>() {
                Ok(n) if (low..=high).contains(&n) => return Some(n),
                Ok(n) if n < low && n < 0 => "which is negative",
                Ok(n) if n < low => "which is too small",
                Ok(_) => "which is too large",
                Err(_) if text.starts_with('-') => "which is negative and does not fit 64 bits",
                Err(_) => "which does not fit 64 bits",
            }
        };
        let right = if why.ends_with("64 bits") {
            format!("{right}; the largest is {}", i64::MAX)
        } else {
            right
        };
        self.wrong(key, format!("{}, {why}", quoted(text)), right);
        None
    }

    /// The contract, if all of it is there and nothing is wrong.
    pub(super) fn finish<T>(self, contract: Option<T>) -> Result<T, ContractError> {
        let problems = self.problems.into_inner();
        match contract.filter(|_| problems.is_empty()) {
            Some(contract) => Ok(contract),
            None => Err(ContractError::new(&self.file, &self.text, problems)),
        }
    }
}
