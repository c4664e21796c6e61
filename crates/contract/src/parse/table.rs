//! A strict walk over a TOML table: every key is asked for once, what was not asked for is an error, and every error
//! knows its line. Problems are collected, so that one look at the output mends the whole file.

use crate::error::{Problem, ValueError, line_at, quoted};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The text of a contract file and what was found wrong in it so far.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    problems: RefCell<Vec<Problem>>,
    /// Where each clause stands, for contradictions that are found after all is read.
    places: RefCell<BTreeMap<String, Range<usize>>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            problems: RefCell::default(),
            places: RefCell::default(),
        }
    }

    pub(crate) fn complain(&self, clause: &str, span: Option<Range<usize>>, error: ValueError) {
        self.problems.borrow_mut().push(Problem {
            clause: clause.to_owned(),
            line: span.as_ref().map(|span| line_at(self.text, span.start)),
            found: error.found,
            right: error.right,
            span,
        });
    }

    /// Where the clause stands; failing that, where its table stands.
    pub(crate) fn place_of(&self, clause: &str) -> Option<Range<usize>> {
        let places = self.places.borrow();
        let mut path = clause;
        loop {
            if let Some(span) = places.get(path) {
                return Some(span.clone());
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.problems.take()
    }
}

/// One table of the file.
pub(crate) struct Table<'a> {
    source: &'a Source<'a>,
    path: String,
    span: Option<Range<usize>>,
    entries: &'a DeTable<'a>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Table<'a> {
    pub(crate) fn root(source: &'a Source<'a>, entries: &'a DeTable<'a>) -> Self {
        Self {
            source,
            path: String::new(),
            span: None,
            entries,
            asked: RefCell::default(),
        }
    }

    pub(crate) fn clause(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Reports a problem with the value of a key.
    pub(crate) fn complain(&self, key: &str, error: ValueError) {
        let clause = self.clause(key);
        let span = self.source.place_of(&clause).or_else(|| self.span.clone());
        self.source.complain(&clause, span, error);
    }

    /// The value of a key, if it is there; it counts as asked for.
    fn get(&self, key: &'static str) -> Option<(&'a DeValue<'a>, Range<usize>)> {
        self.asked.borrow_mut().insert(key);
        let value = self.entries.get(key)?;
        self.source
            .places
            .borrow_mut()
            .insert(self.clause(key), value.span());
        Some((value.get_ref(), value.span()))
    }

    fn need(&self, key: &'static str, example: &str) -> Option<(&'a DeValue<'a>, Range<usize>)> {
        let value = self.get(key);
        if value.is_none() {
            let error = ValueError::new(
                "nothing: the key is missing",
                format!("write it, as in `{key} = {example}`"),
            );
            self.source.complain(&self.clause(key), self.span.clone(), error);
        }
        value
    }

    /// The value as it stands in the file, with the name of its kind.
    fn seen(&self, value: &DeValue<'_>, span: Range<usize>) -> String {
        let raw = self.source.text.get(span).unwrap_or_default();
        let raw = raw.lines().next().unwrap_or_default();
        let article = if value.type_str().starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        format!("{}, {article} {}", quoted(raw), value.type_str())
    }

    /// A text that `read` takes.
    pub(crate) fn text<T>(
        &self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Option<T> {
        let (value, span) = self.need(key, example)?;
        match value.as_str() {
            Some(text) => read(text).map_err(|error| self.complain(key, error)).ok(),
            None => {
                let right = format!("write it as text, as in `{key} = {example}`");
                self.complain(key, ValueError::new(self.seen(value, span), right));
                None
            }
        }
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let example = format!("\"{}\"", words.first().map_or("", |w| w.0));
        self.text(key, &example, |text| {
            words
                .iter()
                .find(|(word, _)| *word == text)
                .map(|&(_, value)| value)
                .ok_or_else(|| {
                    let all: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                    ValueError::new(
                        format!("{}, an unknown word", quoted(text)),
                        format!("write one of {}", all.join(", ")),
                    )
                })
        })
    }

    /// A whole number from `low` to `high`.
    pub(crate) fn number(&self, key: &'static str, low: u32, high: u32, example: &str) -> Option<u32> {
        let (value, span) = self.need(key, example)?;
        let number = value
            .as_integer()
            .and_then(|n| i128::from_str_radix(n.as_str(), n.radix()).ok())
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| (low..=high).contains(n));
        if number.is_none() {
            let right = format!("write a whole number from {low} to {high}, as in `{key} = {example}`");
            self.complain(key, ValueError::new(self.seen(value, span), right));
        }
        number
    }

    /// A truth value that may be absent; absent is false.
    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        let Some((value, span)) = self.get(key) else {
            return Some(false);
        };
        if value.as_bool().is_none() {
            self.complain(
                key,
                ValueError::new(
                    self.seen(value, span),
                    format!("write `{key} = true` or leave it out"),
                ),
            );
        }
        value.as_bool()
    }

    /// A list of texts that `read` takes; `None` where any of them is wrong.
    pub(crate) fn texts<T>(
        &self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Option<Vec<T>> {
        let (value, span) = self.need(key, example)?;
        let right = || format!("write a list of texts, as in `{key} = {example}`");
        let Some(items) = value.as_array() else {
            self.complain(key, ValueError::new(self.seen(value, span), right()));
            return None;
        };
        let clause = self.clause(key);
        let (mut all, mut sound) = (Vec::new(), true);
        for item in items.iter() {
            let result = match item.get_ref().as_str() {
                Some(text) => read(text),
                None => Err(ValueError::new(self.seen(item.get_ref(), item.span()), right())),
            };
            match result {
                Ok(value) => all.push(value),
                Err(error) => {
                    self.source.complain(&clause, Some(item.span()), error);
                    sound = false;
                }
            }
        }
        sound.then_some(all)
    }

    /// A table within this one.
    pub(crate) fn table(&self, key: &'static str) -> Option<Table<'a>> {
        let path = self.clause(key);
        let Some((value, span)) = self.get(key) else {
            let error = ValueError::new(
                "nothing: the table is missing",
                format!("write the table `[{path}]`"),
            );
            self.source.complain(&path, self.span.clone(), error);
            return None;
        };
        let Some(entries) = value.as_table() else {
            self.complain(
                key,
                ValueError::new(self.seen(value, span), format!("write a table `[{path}]`")),
            );
            return None;
        };
        Some(Table {
            source: self.source,
            path,
            span: Some(span),
            entries,
            asked: RefCell::default(),
        })
    }

    /// The tables of a list of tables.
    pub(crate) fn tables(&self, key: &'static str) -> Option<Vec<Table<'a>>> {
        let path = self.clause(key);
        let right = || format!("write one `[[{path}]]` for each");
        let Some((value, span)) = self.get(key) else {
            self.complain(key, ValueError::new("nothing: the key is missing", right()));
            return None;
        };
        let Some(items) = value.as_array() else {
            self.complain(key, ValueError::new(self.seen(value, span), right()));
            return None;
        };
        let mut tables = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let Some(entries) = item.get_ref().as_table() else {
                self.complain(
                    key,
                    ValueError::new(self.seen(item.get_ref(), item.span()), right()),
                );
                return None;
            };
            let (path, span) = (format!("{path}.{}", n + 1), Some(item.span()));
            self.source.places.borrow_mut().insert(path.clone(), item.span());
            tables.push(Table {
                source: self.source,
                path,
                span,
                entries,
                asked: RefCell::default(),
            });
        }
        Some(tables)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Every key that nobody asked for is an error. `elsewhere` says of some where they would belong.
    pub(crate) fn finish(&self, elsewhere: &[(&str, &str)]) {
        let asked = self.asked.borrow();
        for key in self
            .entries
            .keys()
            .filter(|key| !asked.contains(key.get_ref().as_ref()))
        {
            let name = key.get_ref().as_ref();
            let known: Vec<_> = asked.iter().map(|k| format!("`{k}`")).collect();
            let right = match elsewhere.iter().find(|(other, _)| *other == name) {
                Some((_, place)) => format!("`{name}` belongs to {place}; leave it out here"),
                None => match closest(name, &asked) {
                    Some(near) => format!("did you mean `{near}`? The keys here are {}", known.join(", ")),
                    None => format!("the keys here are {}", known.join(", ")),
                },
            };
            let error = ValueError::new(format!("the unknown key {}", quoted(name)), right);
            self.source.complain(&self.clause(name), Some(key.span()), error);
        }
    }
}

/// The known key that differs in at most two letters.
fn closest<'k>(name: &str, known: &BTreeSet<&'k str>) -> Option<&'k str> {
    let near = known.iter().map(|k| (distance(name, k), *k)).min()?;
    (near.0 <= 2 && name.len() > 2).then_some(near.1)
}

/// How many letters must be changed, added or dropped to make one text the other.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let cost = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = cost.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
