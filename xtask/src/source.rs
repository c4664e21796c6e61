//! Reading Rust source as text: comments, strings and characters blanked out, so that what remains is code. Good
//! enough to find names and the ends of functions; no parser.

/// The source with every comment, string and character literal replaced by spaces; lines stay where they are.
pub(crate) fn code_only(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < text.len() {
        let end = skip(&text, at);
        if end == at {
            out.push(text[at]);
            at += 1;
        } else {
            out.extend(text[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that opens at `at` ends; `at` itself when none opens there.
fn skip(text: &[char], at: usize) -> usize {
    let next = text.get(at + 1).copied();
    match text[at] {
        '/' if next == Some('/') => until(text, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment(text, at),
        '"' => quoted(text, at),
        '\'' => character(text, at),
        'r' | 'b' | 'c' if !after_name(text, at) => prefixed(text, at),
        _ => at,
    }
}

fn until(text: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    (from..text.len()).find(|&i| stop(text[i])).unwrap_or(text.len())
}

fn after_name(text: &[char], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| is_name(text[before]))
}

/// True within an identifier.
pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(text: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0usize, at);
    while i < text.len() {
        match (text[i], text.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    text.len()
}

fn quoted(text: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < text.len() && text[i] != '"' {
        i += if text[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(text.len())
}

/// A character literal, told from a lifetime by its closing quote.
fn character(text: &[char], at: usize) -> usize {
    match (text.get(at + 1), text.get(at + 2)) {
        (Some('\\'), Some(_)) => (until(&text[at + 3..], 0, |c| c == '\'') + at + 4).min(text.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#`, `c"…"`, `b'…'`; anything else is a name.
fn prefixed(text: &[char], at: usize) -> usize {
    let mut i = at;
    while i < text.len() && i < at + 2 && matches!(text[i], 'r' | 'b' | 'c') {
        i += 1;
    }
    let raw = text[at..i].contains(&'r');
    let hashes = text[i..].iter().take_while(|&&c| c == '#').count();
    match text.get(i + hashes) {
        Some('"') if raw => {
            let close: Vec<char> = std::iter::once('"')
                .chain(std::iter::repeat_n('#', hashes))
                .collect();
            let body = i + hashes + 1;
            text[body..]
                .windows(close.len())
                .position(|window| window == close)
                .map_or(text.len(), |found| body + found + close.len())
        }
        Some('"') if hashes == 0 => quoted(text, i),
        Some('\'') if hashes == 0 && text[at..i] == ['b'] => character(text, i),
        _ => at,
    }
}

/// A function's name, the line it opens on (from 1) and how many lines it spans.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// From 1.
    pub(crate) line: usize,
    /// Its first to its last line.
    pub(crate) lines: usize,
}

/// Every function with a body, in a text from [`code_only`].
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let text: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut line = 1;
    for at in 0..text.len() {
        if text[at] == '\n' {
            line += 1;
        }
        let opens = text[at..].starts_with(&['f', 'n', ' ']) && !after_name(&text, at);
        if !opens {
            continue;
        }
        let name: String = text[at + 3..]
            .iter()
            .copied()
            .take_while(|&c| is_name(c))
            .collect();
        if let (false, Some(end)) = (name.is_empty(), body_end(&text, at)) {
            let lines = text[at..end].iter().filter(|&&c| c == '\n').count() + 1;
            found.push(Function { name, line, lines });
        }
    }
    found
}

/// The end of the body of the function that opens at `at`; none for a declaration without one.
fn body_end(text: &[char], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut nested = 0usize;
    for (i, &c) in text.iter().enumerate().skip(at) {
        match c {
            '(' | '[' if depth == 0 => nested += 1,
            ')' | ']' if depth == 0 => nested = nested.saturating_sub(1),
            ';' if depth == 0 && nested == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        for (source, words) in [
            ("a // schedule\nb", &["a", "b"][..]),
            ("a /* x /* y */ z */ b", &["a", "b"]),
            (r#"f("schedule::x\"")"#, &["f(", ")"]),
            (r##"f(r#"a"b"#)"##, &["f(", ")"]),
            ("'a' 'static '\\'' b'x' end", &["'static", "end"]),
            ("rb ra\"x\"", &["rb", "ra"]),
        ] {
            let code = code_only(source);
            assert_eq!(code.split_whitespace().collect::<Vec<_>>(), words, "{source}");
            assert_eq!(code.chars().count(), source.chars().count(), "{source}");
            assert_eq!(code.lines().count(), source.lines().count(), "{source}");
        }
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let code = code_only(
            "fn one() { 1 }\ntrait T { fn two(a: [u8; 4]); }\nfn three()\n{\n  if x { \"}\" }\n}\n",
        );
        let found = functions(&code);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(found, [("one", 1, 1), ("three", 3, 4)]);
    }
}
