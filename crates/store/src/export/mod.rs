//! Writing a ledger out: a folder with one file a record kind, ordered by `seq`, and a manifest with counts and SHA-256
//! (spec/ledger.md, Export). The folder appears whole or not at all; memory does not grow with the ledger.

mod sort;
mod tsv;

use crate::{LedgerSink, Store, StoreError};
use contract::ledger::{
    AttemptRecord, ContractRecord, DeliveryEvent, EndpointEvent, MessageRecord, NodeEvent,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sort::Sorter;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tsv::Table;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated, with a header.
    Tsv,
    /// One JSON object a line.
    Jsonl,
}

impl Format {
    const fn extension(self) -> &'static str {
        match self {
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
        }
    }
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// `duehook-ledger/1`.
    pub format: &'static str,
    /// By file name.
    pub files: BTreeMap<String, FileEntry>,
}

/// What the manifest says of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Records, without the header.
    pub rows: u64,
    /// Of the whole file, lower-case hex.
    pub sha256: String,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Something is there already.
    #[error("{} exists and is not an empty folder: name another, or remove it first", path.display())]
    Exists {
        /// The folder asked for.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// The ledger could not be read.
    #[error("cannot read the ledger")]
    Store(
        /// Why.
        #[source]
        StoreError,
    ),
}

/// Told how many records were written so far, now and then.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// How often progress is told, in records.
const TELL: u64 = 4096;
/// Bytes of records that one sorted kind holds in memory.
const SORT_BYTES: usize = 32 << 20;

/// Exports the whole ledger of a store as of one moment.
///
/// # Errors
///
/// See [`ExportError`]; the folder does not exist then.
pub async fn write_folder(
    store: &dyn Store,
    out: &Path,
    format: Format,
    progress: Progress,
) -> Result<Manifest, ExportError> {
    let folder = FolderSink::create(out, format, progress)?;
    let sink = store
        .read_ledger(Box::new(folder))
        .await
        .map_err(ExportError::Store)?;
    let folder = sink.into_any().downcast::<FolderSink>();
    let folder = folder.map_err(|_| {
        ExportError::Store(StoreError::Corrupt {
            reason: "the ledger came back in another sink".to_owned(),
            source: None,
        })
    })?;
    folder.finish()
}

/// Writes a ledger into a folder. Dropped before [`FolderSink::finish`], it leaves nothing.
pub struct FolderSink {
    out: PathBuf,
    partial: Partial,
    format: Format,
    contracts: Output,
    messages: Output,
    endpoint_events: Output,
    node_events: Output,
    delivery_events: Sorter,
    attempts: Sorter,
    written: u64,
    progress: Progress,
}

/// The folder under its first name; removed unless it got its last.
struct Partial {
    path: PathBuf,
    kept: bool,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Io { path, source }
}

impl FolderSink {
    /// Begins an export beside the folder it will be.
    ///
    /// # Errors
    ///
    /// When something is there already, or nothing can be written there.
    pub fn create(out: &Path, format: Format, progress: Progress) -> Result<Self, ExportError> {
        // Without a slash at its end, so that the partial folder stands beside it.
        let out: PathBuf = out.components().collect();
        if !is_free(&out) {
            return Err(ExportError::Exists { path: out });
        }
        let mut name = out.as_os_str().to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        let path = PathBuf::from(name);
        std::fs::create_dir(&path).map_err(io_error(&path))?;
        let partial = Partial { path, kept: false };
        let open = |kind: &Kind| Output::create(&partial.path, kind, format);
        Ok(Self {
            out,
            format,
            contracts: open(&CONTRACTS)?,
            messages: open(&MESSAGES)?,
            endpoint_events: open(&ENDPOINT_EVENTS)?,
            node_events: open(&NODE_EVENTS)?,
            delivery_events: Sorter::new(&partial.path, "delivery_events", SORT_BYTES),
            attempts: Sorter::new(&partial.path, "attempts", SORT_BYTES),
            partial,
            written: 0,
            progress,
        })
    }

    /// Sorts what came unsorted, writes the manifest and gives the folder its name.
    ///
    /// # Errors
    ///
    /// When something cannot be written; the folder does not exist then.
    pub fn finish(self) -> Result<Manifest, ExportError> {
        let Self {
            out,
            mut partial,
            format,
            ..
        } = self;
        let folder = partial.path.clone();
        let mut files = BTreeMap::new();
        for (kind, sorter) in [
            (&DELIVERY_EVENTS, self.delivery_events),
            (&ATTEMPTS, self.attempts),
        ] {
            let mut output = Output::create(&folder, kind, format)?;
            let path = output.path.clone();
            sorter.drain(|line| output.line(line)).map_err(io_error(&path))?;
            output.finish(&mut files)?;
        }
        for output in [
            self.contracts,
            self.messages,
            self.endpoint_events,
            self.node_events,
        ] {
            output.finish(&mut files)?;
        }
        let manifest = Manifest {
            format: "duehook-ledger/1",
            files,
        };
        let path = folder.join("manifest.json");
        let text = serde_json::to_string_pretty(&manifest).map_err(|error| io_error(&path)(error.into()))?;
        let write = || {
            let mut file = File::create(&path)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            // The names as well, before the folder is shown.
            File::open(&folder)?.sync_all()
        };
        write().map_err(io_error(&path))?;
        std::fs::rename(&folder, &out).map_err(io_error(&out))?;
        partial.kept = true;
        (self.progress)(self.written);
        Ok(manifest)
    }

    fn row<T: Table + Serialize>(&self, record: &T) -> crate::Result<Vec<u8>> {
        let mut line = Vec::with_capacity(256);
        match self.format {
            Format::Tsv => record.write(&mut line),
            Format::Jsonl => {
                serde_json::to_writer(&mut line, record).map_err(|error| broken(error.into()))?;
            }
        }
        line.push(b'\n');
        Ok(line)
    }

    fn count(&mut self) {
        self.written += 1;
        if self.written.is_multiple_of(TELL) {
            (self.progress)(self.written);
        }
    }
}

/// Nothing there, or a folder without anything in it (which a rename replaces).
fn is_free(out: &Path) -> bool {
    match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// An error of the export's own files, on its way through the reading of the ledger.
fn broken(error: io::Error) -> StoreError {
    StoreError::Unavailable {
        reason: "the export cannot be written".to_owned(),
        source: Some(Box::new(error)),
    }
}

impl LedgerSink for FolderSink {
    fn contract(&mut self, record: &ContractRecord) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.contracts.line(&line).map_err(broken)
    }
    fn message(&mut self, record: &MessageRecord) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.messages.line(&line).map_err(broken)
    }
    fn endpoint_event(&mut self, record: &EndpointEvent) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.endpoint_events.line(&line).map_err(broken)
    }
    fn node_event(&mut self, record: &NodeEvent) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.node_events.line(&line).map_err(broken)
    }
    fn delivery_event(&mut self, record: &DeliveryEvent) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.delivery_events.push(record.seq.get(), &line).map_err(broken)
    }
    fn attempt(&mut self, record: &AttemptRecord) -> crate::Result<()> {
        let line = self.row(record)?;
        self.count();
        self.attempts.push(record.seq.get(), &line).map_err(broken)
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

/// A record kind: the name of its file and its header.
struct Kind {
    name: &'static str,
    header: &'static str,
}

const fn kind<T: Table>(name: &'static str) -> Kind {
    Kind {
        name,
        header: T::HEADER,
    }
}

const ATTEMPTS: Kind = kind::<AttemptRecord>("attempts");
const DELIVERY_EVENTS: Kind = kind::<DeliveryEvent>("delivery_events");
const MESSAGES: Kind = kind::<MessageRecord>("messages");
const ENDPOINT_EVENTS: Kind = kind::<EndpointEvent>("endpoint_events");
const NODE_EVENTS: Kind = kind::<NodeEvent>("node_events");
const CONTRACTS: Kind = kind::<ContractRecord>("contracts");

/// One file, hashed as it is written.
struct Output {
    name: String,
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    rows: u64,
}

impl Output {
    fn create(folder: &Path, kind: &Kind, format: Format) -> Result<Self, ExportError> {
        let name = format!("{}.{}", kind.name, format.extension());
        let path = folder.join(&name);
        let file = File::create(&path).map_err(io_error(&path))?;
        let mut output = Self {
            name,
            path,
            file: BufWriter::with_capacity(1 << 18, file),
            hash: Sha256::new(),
            rows: 0,
        };
        if format == Format::Tsv {
            let header = format!("{}\n", kind.header.replace(' ', "\t"));
            output
                .put(header.as_bytes())
                .map_err(|error| io_error(&output.path)(error))?;
        }
        Ok(output)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.file.write_all(bytes)
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.rows += 1;
        self.put(line)
    }

    fn finish(self, files: &mut BTreeMap<String, FileEntry>) -> Result<(), ExportError> {
        let path = self.path;
        let file = self
            .file
            .into_inner()
            .map_err(|error| io_error(&path)(error.into_error()))?;
        file.sync_all().map_err(io_error(&path))?;
        let mut sha256 = String::with_capacity(64);
        for byte in self.hash.finalize() {
            let _ = write!(sha256, "{byte:02x}");
        }
        let entry = FileEntry {
            rows: self.rows,
            sha256,
        };
        files.insert(self.name, entry);
        Ok(())
    }
}
