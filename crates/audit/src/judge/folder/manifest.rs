//! `manifest.json`: which file holds which records, how many, and their hash.

use super::cells::Format;
use super::lines::hex;
use super::records::Kind;
use crate::facts::{FactsError, quoted};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const NAME: &str = "manifest.json";
const FORMAT: &str = "duehook-ledger/1";
/// Six files need a few hundred bytes.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: String,
    files: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rows: u64,
    sha256: String,
}

/// A file that the manifest lists.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) format: Format,
    pub(super) rows: u64,
    pub(super) sha256: String,
}

/// One file for each kind of record, and the manifest's own SHA-256.
pub(super) fn read(folder: &Path) -> Result<(Vec<Listed>, String), FactsError> {
    let path = folder.join(NAME);
    let name = path.display().to_string();
    let wrong = |found: String, right: &str| FactsError::new(&name, None, found, right);
    let bytes = std::fs::read(&path).map_err(|error| FactsError::io(&name, error))?;
    if bytes.len() > MAX_BYTES {
        return Err(wrong(
            format!("{} bytes", bytes.len()),
            "a manifest of at most 64 KiB",
        ));
    }
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
        let right =
            r#"{"format": "duehook-ledger/1", "files": {"attempts.tsv": {"rows": 0, "sha256": "…"}, …}}"#;
        FactsError::new(&name, u64::try_from(error.line()).ok(), error.to_string(), right)
    })?;
    if manifest.format != FORMAT {
        return Err(wrong(
            format!("format {}", quoted(&manifest.format)),
            "format `duehook-ledger/1`",
        ));
    }
    let mut files: Vec<Listed> = Vec::new();
    for (file, entry) in manifest.files {
        let Some((kind, format)) = of_name(&file) else {
            return Err(wrong(
                quoted(&file),
                "one .tsv or .jsonl file for each kind of record, and no other",
            ));
        };
        if let Some(twin) = files.iter().find(|listed| listed.kind == kind) {
            return Err(wrong(
                format!("{} beside {}", quoted(&file), quoted(&twin.name)),
                "one of them",
            ));
        }
        files.push(Listed {
            name: file,
            kind,
            format,
            rows: entry.rows,
            sha256: entry.sha256,
        });
    }
    for kind in Kind::ALL {
        if !files.iter().any(|file| file.kind == *kind) {
            let right = format!("{}.tsv or {0}.jsonl among its files", kind.stem());
            return Err(wrong("no such file".to_owned(), &right));
        }
    }
    no_more(folder, &files)?;
    Ok((files, hex(&Sha256::digest(&bytes))))
}

fn of_name(file: &str) -> Option<(Kind, Format)> {
    let (stem, ending) = file.rsplit_once('.')?;
    let format = match ending {
        "tsv" => Format::Tsv,
        "jsonl" => Format::Jsonl,
        _ => return None,
    };
    Kind::ALL
        .iter()
        .find(|kind| kind.stem() == stem)
        .map(|kind| (*kind, format))
}

/// Records that the manifest does not list would be judged by nobody.
fn no_more(folder: &Path, files: &[Listed]) -> Result<(), FactsError> {
    let name = folder.display().to_string();
    for entry in std::fs::read_dir(folder).map_err(|error| FactsError::io(&name, error))? {
        let entry = entry.map_err(|error| FactsError::io(&name, error))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if of_name(&file).is_some() && !files.iter().any(|listed| listed.name == file) {
            let found = format!("{}, which the manifest does not list", quoted(&file));
            return Err(FactsError::new(
                &name,
                None,
                found,
                "the files that the manifest lists, and no more records",
            ));
        }
    }
    Ok(())
}
