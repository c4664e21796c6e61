//! Reads an exported ledger (spec/ledger.md, Export): a folder with one file a record kind and a manifest. Strict: what
//! the manifest does not bear out is not judged (I7).

mod cells;
mod lines;
mod manifest;
mod records;

use super::{Judge, Options, Report};
use crate::facts::FactsError;
use cells::Format;
use lines::Lines;
use records::Kind;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Judges an exported ledger, and with it a receiver's own log where there is one.
///
/// # Errors
/// A file is missing, unreadable, not what the manifest says, or holds a row that is no record.
pub fn judge_folder(folder: &Path, receiver: Option<&Path>, options: Options) -> Result<Report, FactsError> {
    let mut judge = Judge::new(options);
    read_folder(folder, &mut judge)?;
    if let Some(path) = receiver {
        read_receiver(path, &mut judge)?;
    }
    judge.finish()
}

/// Hands every record of an exported ledger to a judge.
///
/// # Errors
/// As [`judge_folder`].
pub fn read_folder(folder: &Path, judge: &mut Judge) -> Result<(), FactsError> {
    let (files, sha256) = manifest::read(folder)?;
    judge.input(manifest::NAME, &sha256);
    for kind in Kind::ALL {
        let listed = files.iter().find(|file| file.kind == *kind);
        // The manifest is refused where a kind is missing.
        let Some(listed) = listed else { continue };
        let path = folder.join(&listed.name);
        let name = path.display().to_string();
        let mut lines = Lines::open(&path)?;
        let rows = read_file(&name, &mut lines, *kind, listed.format, judge)?;
        let found = lines.sha256();
        if rows != listed.rows {
            let (found, right) = (
                format!("{rows} rows"),
                format!("{} rows, as the manifest says", listed.rows),
            );
            return Err(FactsError::new(&name, None, found, right));
        }
        if found != listed.sha256 {
            let right = format!(
                "SHA-256 {}, as the manifest says; export the ledger again",
                listed.sha256
            );
            return Err(FactsError::new(&name, None, format!("SHA-256 {found}"), right));
        }
        judge.input(&listed.name, &found);
    }
    Ok(())
}

/// Hands a receiver's own log to a judge.
///
/// # Errors
/// It cannot be read, or a line is no request.
pub fn read_receiver(path: &Path, judge: &mut Judge) -> Result<(), FactsError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| FactsError::io(&name, error))?;
    let mut hashing = lines::Hashing::new(file);
    judge.receiver(&name, BufReader::with_capacity(lines::BUFFER, &mut hashing))?;
    judge.input("receiver", &hashing.sha256());
    Ok(())
}

fn read_file(
    name: &str,
    lines: &mut Lines,
    kind: Kind,
    format: Format,
    judge: &mut Judge,
) -> Result<u64, FactsError> {
    let columns = kind.columns();
    if format == Format::Tsv {
        let found = lines
            .next(name)?
            .map(|(_, text)| text.to_owned())
            .unwrap_or_default();
        if found.split('\t').ne(columns.iter().copied()) {
            let right = format!("a header with the columns {}, tab-separated", columns.join(" "));
            return Err(FactsError::new(
                name,
                Some(1),
                crate::facts::quoted(&found),
                right,
            ));
        }
    }
    let (mut rows, mut last) = (0, None);
    while let Some((line, text)) = lines.next(name)? {
        let row = cells::Row::parse(name, line, text, columns, format)?;
        let seq = kind.take(&row, judge)?;
        if seq < last {
            return Err(row.wrong("seq", &row.shown("seq"), "rows ordered by seq"));
        }
        last = seq;
        rows += 1;
    }
    Ok(rows)
}
